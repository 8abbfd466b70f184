#include "worker/tidings.hpp"

#include <utility>

namespace holdfast::worker {
namespace {

constexpr Duration gathering = std::chrono::seconds(1);
constexpr unsigned failures_that_mean_away = 3;

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
  std::string line;
  bool bad = false;
  if (taken_ != 0) line = "took " + std::to_string(taken_);
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] == 0) continue;
    const auto reason = static_cast<LossReason>(i);
    const bool wanted = reason == LossReason::stopped || reason == LossReason::drained;
    const bool given_back = wanted || reason == LossReason::sink_failed;
    bad = bad || !wanted;
    line += (line.empty() ? "" : ", ") + std::string(given_back ? "gave back " : "lost ") + std::to_string(ends_[i]) +
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

void Tidings::answered(Outcome outcome, const Error& error) {
  if (outcome == Outcome::applied || outcome == Outcome::conflict) {
    failures_ = 0;
    first_failure_.reset();
    if (away_since_) log_.info("store: answers again after " + seconds(loop_.instant() - *away_since_));
    away_since_.reset();
    return;
  }
  if (!first_failure_) first_failure_ = loop_.instant();
  ++failures_;
  // What can never work as it is, is told at once; the rest may be a hiccup.
  if (!away_since_ && (outcome == Outcome::rejected || failures_ >= failures_that_mean_away)) {
    away_since_ = first_failure_;
    log_.warning("store: " + std::string(to_string(outcome)) + ": " + error.detail +
                 "; trying on, leases are kept as long as they last");
  }
}

}  // namespace holdfast::worker
