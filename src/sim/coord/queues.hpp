#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/coord/queue.hpp"
#include "sim/coord/leases.hpp"
#include "sim/history/delivery.hpp"

namespace holdfast::sim::coordinated {

/// Ordered queues: strict order within a group, one consumer at a time, each message until it is acknowledged, each
/// id once. Three queues, one for each way with poison; what is moved away goes to a fourth.
class Queues final : public LeasedScene {
 public:
  Queues(Stage& stage, std::size_t count) : LeasedScene(stage), count_(count) {}
  void act(Node& node) override;
  void wrote(const Write& write) override;
  [[nodiscard]] std::string left() override;
  void judge() override;

  /// Whether the message of this id was put into the queue.
  [[nodiscard]] bool was_sent(const std::string& queue, const std::string& id) const;

 private:
  struct Send;
  struct Work;
  /// One group, as the table has it.
  struct Group {
    std::size_t number = 0;
    std::map<std::int64_t, std::string> ids;        // by sequence number
    std::map<std::int64_t, std::int64_t> given_to;  // the highest number that was given out under an epoch
    std::vector<Enqueued> enqueued;
    std::vector<Dequeued> dequeued;
  };
  void send(Node& node);
  void sent(const std::shared_ptr<Send>& call, const Ended<Sent>& ended);
  void receive(Node& node, std::size_t batches);
  void received(const std::shared_ptr<Work>& work, const Ended<std::optional<Batch>>& ended);
  void got(const std::shared_ptr<Work>& work, const Batch& batch);
  void settle(const std::shared_ptr<Work>& work, Settlement settlement, Verb verb);
  void settled(const std::shared_ptr<Work>& work, const Settlement& settlement, Verb verb,
               const Ended<Settled>& ended);
  void next(const std::shared_ptr<Work>& work);
  void redrive(Node& node, const std::string& queue, const std::string& group);
  void group_left(const Write& write, const Write::Left& left);
  [[nodiscard]] Group& group(const std::string& key);
  [[nodiscard]] static bool is_bad(const std::string& queue, const std::string& id);

  const std::size_t count_;
  std::size_t messages_ = 0;
  struct Message {
    std::string queue, group, id;
    Instant first_tried{};
  };
  std::vector<Message> tried_;
  std::map<std::string, Group> groups_;                       // by row
  std::map<std::string, std::int64_t> seq_of_;                // by the row that remembers an id
  std::map<std::string, std::pair<Instant, Instant>> asked_;  // by id: the first request, and its reply if it came
};

}  // namespace holdfast::sim::coordinated
