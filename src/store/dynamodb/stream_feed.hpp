#pragma once
#include <memory>
#include <string>

#include "store/change_feed.hpp"
#include "store/dynamodb/context.hpp"
#include "store/dynamodb/stream_reader.hpp"

namespace holdfast::store::dynamodb {

/// Store::changes() out of a table's stream: carries out what a StreamReader asks, for as long as somebody listens.
/// On the loop's thread.
class StreamFeed {
 public:
  StreamFeed(ContextPtr context, std::unique_ptr<Caller> streams);
  ~StreamFeed();
  StreamFeed(const StreamFeed&) = delete;
  StreamFeed& operator=(const StreamFeed&) = delete;

  void listen(ChangeListener listener);
  /// What calls the streams' endpoint.
  [[nodiscard]] Caller& caller() { return *streams_; }
  /// Why there is none; empty while that is not known, or while there is.
  [[nodiscard]] const std::string& no_feed() const { return no_feed_; }

 private:
  void pump();
  void answered(std::uint64_t id, const CallReply& reply);
  void note_state();
  void stop();

  const ContextPtr context_;
  std::unique_ptr<Caller> streams_;
  const std::shared_ptr<ChangeFeed> feed_;
  std::shared_ptr<StreamReader> reader_;  // null: nobody listens
  TimerId timer_ = 0;
  std::string no_feed_;
};

}  // namespace holdfast::store::dynamodb
