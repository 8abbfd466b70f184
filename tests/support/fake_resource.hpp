#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/resource.hpp"

namespace holdfast::test {

/// What the outside sees of a whole fleet, and whether it was right: one actor at a time, epochs rising, no hole.
class World {
 public:
  struct Effect {
    Instant at;
    std::string connection;
    std::string actor;
    Epoch epoch;
    std::int64_t seq = 0;
  };
  struct Ending {
    Instant at;
    std::string connection;
    std::string actor;
    LossReason reason{};
  };

  void act(Effect effect) {
    Latest& latest = latest_[effect.connection];
    if (effect.epoch < latest.epoch)
      wrong_.push_back(describe(effect) + " after epoch " + std::to_string(latest.epoch.value));
    if (effect.epoch == latest.epoch && effect.actor != latest.actor)
      wrong_.push_back(describe(effect) + ", whose epoch is " + latest.actor + "'s");
    if (effect.seq > latest.seq + 1) wrong_.push_back(describe(effect) + " after seq " + std::to_string(latest.seq));
    latest = {effect.epoch, effect.actor, std::max(latest.seq, effect.seq), effect.at};
    effects.push_back(std::move(effect));
  }

  [[nodiscard]] std::vector<std::string> wrong() const { return wrong_; }
  /// When anything was last seen of it; the beginning of time: never.
  [[nodiscard]] Instant last_seen(const std::string& connection) const {
    const auto found = latest_.find(connection);
    return found == latest_.end() ? Instant{} : found->second.at;
  }
  [[nodiscard]] std::string actor(const std::string& connection) const {
    const auto found = latest_.find(connection);
    return found == latest_.end() ? std::string() : found->second.actor;
  }
  [[nodiscard]] std::int64_t seq(const std::string& connection) const {
    const auto found = latest_.find(connection);
    return found == latest_.end() ? 0 : found->second.seq;
  }
  [[nodiscard]] std::size_t connections_seen_since(Instant when) const {
    std::size_t count = 0;
    for (const auto& [connection, latest] : latest_) count += latest.at >= when ? 1 : 0;
    return count;
  }

  std::size_t starts = 0;
  std::vector<Effect> effects;
  std::vector<Ending> endings;
  std::vector<std::pair<std::string, std::string>> edits;  // connection, URL

 private:
  struct Latest {
    Epoch epoch;
    std::string actor;
    std::int64_t seq = 0;
    Instant at{};
  };
  static std::string describe(const Effect& effect) {
    return effect.connection + ": " + effect.actor + " acted under epoch " + std::to_string(effect.epoch.value) +
           " with seq " + std::to_string(effect.seq);
  }

  std::map<std::string, Latest> latest_;
  std::vector<std::string> wrong_;
};

/// Does something visible every 20 ms while its lease holds. How it stops is the test's choice.
class FakeResource final : public Resource {
 public:
  struct Manner {
    Duration stops_after{};  ///< what it takes to end
    bool never_stops = false;
    std::string reason;           ///< what it says of itself
    bool tells_of_first = false;  ///< asks for a checkpoint after its first effect
    int effects_max = 0;          ///< after so many it is silent; 0: never
    int revokes_at = 0;  ///< the effect at which it finds its lease ended and revokes the guard, as a sink may
  };

  FakeResource(World& world, std::string actor, Loop& loop, Manner manner)
      : world_(world), actor_(std::move(actor)), loop_(loop), manner_(manner) {}
  ~FakeResource() override {
    for (const TimerId timer : {timer_, stop_timer_}) {
      if (timer != 0) loop_.cancel(timer);
    }
  }

  void start(Grant grant) override {
    ++world_.starts;
    grant_ = std::move(grant);
    seq_ = grant_.row.number(attribute::last_seq);
    act();
  }
  void row_changed(const Row& row) override {
    world_.edits.emplace_back(grant_.id.value, std::string(row.text(attribute::url)));
  }
  void stop(LossReason reason, Instant deadline, std::function<void()> stopped) override {
    (void)deadline;
    world_.endings.push_back({loop_.instant(), grant_.id.value, actor_, reason});
    if (manner_.never_stops) return;
    stop_timer_ = loop_.call_after(manner_.stops_after, [this, stopped = std::move(stopped)] {
      stop_timer_ = 0;
      if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
      stopped();
    });
  }
  [[nodiscard]] Progress progress() const override {
    Progress progress;
    progress.last_seq = seq_;
    progress.status = "flowing";
    progress.reason = manner_.reason;
    progress.tally.messages = messages_;
    progress.first_message_at = first_;
    return progress;
  }

 private:
  void act() {
    if (manner_.revokes_at != 0 && messages_ + 1 == manner_.revokes_at) grant_.guard->revoke();
    if (grant_.guard->holds(loop_.instant())) {  // S7: before each effect
      world_.act({loop_.instant(), grant_.id.value, actor_, grant_.guard->epoch(), ++seq_});
      if (++messages_ == 1 && manner_.tells_of_first) grant_.first_checkpoint();
      if (!first_) first_ = loop_.wall();
    }
    timer_ = 0;
    if (manner_.effects_max != 0 && messages_ == manner_.effects_max) return;
    timer_ = loop_.call_after(std::chrono::milliseconds(20), [this] { act(); });
  }

  World& world_;
  const std::string actor_;
  Loop& loop_;
  const Manner manner_;
  Grant grant_;
  std::int64_t seq_ = 0;
  std::int64_t messages_ = 0;
  std::optional<WallTime> first_;
  TimerId timer_ = 0, stop_timer_ = 0;
};

}  // namespace holdfast::test
