#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "store/request.hpp"

namespace holdfast::store {

/// What the embedded stores have in common: turns the calls of the contract into operations, answers those that
/// can be answered without a table (invalid, too late, closed), hands the others to submit().
class RequestStore : public Store {
 public:
  explicit RequestStore(Loop& loop) : loop_(loop) {}

  void initialize(Instant deadline, Handler<Reply<std::string>> handler) final;
  void get(std::string key, Instant deadline, Handler<RowReply> handler) final;
  void batch_get(std::vector<std::string> keys, Instant deadline, Handler<RowsReply> handler) final;
  void update(Update update, Instant deadline, Handler<RowReply> handler) final;
  void transact(std::vector<Update> updates, std::string token, Instant deadline, Handler<RowsReply> handler) final;
  void query_due(QueryDue query, Instant deadline, Handler<PageReply> handler) final;
  void query_owned(std::string owner, Instant deadline, Handler<RowsReply> handler) final;
  void close(std::function<void()> done) final;

 protected:
  /// A valid call whose deadline lies ahead. Its handler must not run inside this.
  virtual void submit(std::shared_ptr<Operation> operation) = 0;
  /// Answers what is owed, then calls back; not inside this.
  virtual void shut(std::function<void()> done) = 0;
  [[nodiscard]] Loop& loop() { return loop_; }

 private:
  void accept(Request request, Instant deadline, AnyHandler handler);

  Loop& loop_;
  bool closed_ = false;
};

}  // namespace holdfast::store
