#include "worker/tidings.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::worker {
namespace {

constexpr Duration gathering = std::chrono::seconds(1);
constexpr unsigned failures_that_mean_away = 3;
constexpr std::size_t troubles_told_apart = 5;

std::string seconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

Tidings::~Tidings() {
  if (timer_ != 0) loop_.cancel(timer_);
}

void Tidings::took(std::size_t held_now) {
  ++taken_;
  gather(held_now);
}

void Tidings::ended(LossReason reason, std::size_t held_now) {
  ++ends_[static_cast<std::size_t>(reason)];
  gather(held_now);
}

void Tidings::gather(std::size_t held_now) {
  held_ = held_now;
  if (timer_ != 0) return;
  timer_ = loop_.call_after(gathering, [this] {
    timer_ = 0;
    flush();
  });
}

void Tidings::flush() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  tell_troubles();
  std::string line;
  bool bad = false;
  if (taken_ != 0) line = "took " + std::to_string(taken_);
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] == 0) continue;
    const auto reason = static_cast<LossReason>(i);
    const bool wanted = reason == LossReason::stopped || reason == LossReason::drained;
    const bool given_back = wanted || reason == LossReason::sink_failed;
    bad = bad || !wanted;
    line += (line.empty() ? "" : ", ") + std::string(given_back ? "let go of " : "lost ") + std::to_string(ends_[i]) +
            " (" + std::string(to_string(reason)) + ")";
  }
  if (line.empty()) return;
  line += "; holds " + std::to_string(held_) + " of at most " + std::to_string(capacity_);
  taken_ = 0;
  ends_ = {};
  if (bad) {
    log_.warning(line);
  } else {
    log_.info(line);
  }
}

void Tidings::troubled(const Trouble& trouble) {
  ++troubled_;
  if (trouble.parked) ++parked_;
  if (troubles_.size() < troubles_told_apart) troubles_.push_back(trouble);
  gather(held_);
}

void Tidings::tell_troubles() {
  const std::size_t count = std::exchange(troubled_, 0);
  const std::size_t parked = std::exchange(parked_, 0);
  const std::vector<Trouble> first = std::exchange(troubles_, {});
  const auto words = [](const Trouble& trouble) {
    return trouble.connection + (trouble.parked ? ": parked: " : ": backing off: ") + trouble.reason;
  };
  if (count > troubles_told_apart) {
    log_.warning(std::to_string(count) + " connections do not flow, " + std::to_string(count - parked) +
                 " backing off and " + std::to_string(parked) + " parked; the first is " + words(first.front()));
    return;
  }
  for (const Trouble& trouble : first) log_.warning(words(trouble));
}

void Tidings::answered(Asked asked, Outcome outcome, const Error& error) {
  Side& side = sides_[static_cast<std::size_t>(asked)];
  if (outcome == Outcome::applied || outcome == Outcome::conflict) {
    side = {};
    const bool well = std::none_of(sides_.begin(), sides_.end(), [](const Side& each) { return each.bad; });
    if (!well || !away_since_) return;
    log_.info("store: answers again after " + seconds(loop_.instant() - *away_since_));
    away_since_.reset();
    return;
  }
  if (!side.first_failure) side.first_failure = loop_.instant();
  ++side.failures;
  // What can never work as it is, is told at once; the rest may be a hiccup.
  side.bad = side.bad || outcome == Outcome::rejected || side.failures >= failures_that_mean_away;
  if (!side.bad || away_since_) return;
  away_since_ = side.first_failure;
  log_.warning("store: " + error.detail + "; trying on, leases are kept as long as they last");
}

}  // namespace holdfast::worker
