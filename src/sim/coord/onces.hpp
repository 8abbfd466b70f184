#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/coord/leases.hpp"

namespace holdfast::sim::coordinated {

/// What is run once for each key: one result, never replaced, told to all; never run by two at once; what is to be
/// held for a person is never run again by itself (F22 to F24).
class Onces final : public LeasedScene {
 public:
  Onces(Stage& stage, std::size_t count);
  void act(Node& node) override;
  void wrote(const Write& write) override;
  [[nodiscard]] std::string left() override;

 private:
  struct Call;
  struct Result {
    std::string content;
    Instant from{};
    Instant until = Instant::max();  // past its retention, and run anew
  };
  struct Key {
    std::vector<Result> results;
    std::map<std::int64_t, bool> abandoned_before;  // by the epoch of a claim

    /// Past its retention a key is as new: its input may be another, and an answer may be about the one before.
    [[nodiscard]] bool was_run_anew() const { return !results.empty() && results.front().until != Instant::max(); }
  };
  [[nodiscard]] static OnceOptions::Abandoned policy_of(std::size_t number);
  void turned(const std::shared_ptr<Call>& call, const Ended<coord::Coordinator::Turn>& ended);
  void was_told(const Call& call, const OnceDone& done);
  void run(const std::shared_ptr<Call>& call);
  void finish(const std::shared_ptr<Call>& call);
  void record_late(const std::shared_ptr<Call>& call, OnceResult result, Duration retention);
  void refused(const Call& call);
  void finished(const std::shared_ptr<Call>& call, const Ended<std::optional<OnceResult>>& ended);
  void recorded(std::size_t number, const Write::Left& left, const Origin& origin);

  const std::size_t count_;
  std::vector<std::size_t> hot_;  // the latest key of each place
  std::size_t keys_;
  std::map<std::size_t, Key> known_;
  std::set<std::string> recorded_;
  std::set<std::string> refused_;  // results of which was told that they do not stand
  std::vector<std::size_t> to_end_;
  bool counted_ = false;
};

}  // namespace holdfast::sim::coordinated
