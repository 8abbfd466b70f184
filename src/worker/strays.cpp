#include "worker/strays.hpp"

#include <utility>

#include "runtime/units.hpp"

namespace holdfast::worker {
namespace {

constexpr std::size_t unreadable_told_max = 10;

std::string connections(std::size_t count, bool or_more = false) {
  if (count == 1) return "1 connection";
  return (or_more ? "at least " : "") + std::to_string(count) + " connections";
}

/// A key may be any bytes: that may be what is wrong with it.
std::string shown(const std::string& key) {
  std::string result;
  for (const char c : key.substr(0, 200)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte >= 0x7F ? '?' : c;
  }
  return result;
}

}  // namespace

void Strays::unclaimable(const Unclaimable& now) {
  if (now.count > unclaimable_told_) {
    log_.warning(connections(now.count) + " cannot be claimed by anybody: " + shown(now.key) +
                 (now.count > 1 ? ", for one: " : ": ") + now.why +
                 "; see 'holdfast conn show', 'holdfast conn start' repairs what can be repaired");
  } else if (now.count == 0 && unclaimable_told_ > 0) {
    log_.info("all connections can be claimed again");
  }
  unclaimable_told_ = now.count;
}

void Strays::far_ahead(const FarAhead& now) {
  if (now.count > far_ahead_told_) {
    const std::string until = ", until " + runtime::describe_duration(now.ahead) + " from now; ";
    log_.warning(
        "the leases of " + connections(now.count, now.or_more) + " end far in the future: " + shown(now.key) +
        (now.owner.empty() ? " is nobody's" + until +
                                 "somebody edited the row. No worker looks at it before: "
                                 "'holdfast conn start' repairs it"
                           : " is held by " + shown(now.owner) + until +
                                 "a clock is wrong, here or there, or somebody edited the row. Nobody takes it "
                                 "before: if its owner is dead, 'holdfast conn release' frees it"));
  } else if (now.count == 0 && far_ahead_told_ > 0) {
    log_.info("no lease ends far in the future any more");
  }
  far_ahead_told_ = now.count;
}

void Strays::unreadable(const Error& error) {
  if (error.detail.empty() || unreadable_told_.size() >= unreadable_told_max) return;
  if (!unreadable_told_.insert(error.detail).second) return;
  log_.warning("a row cannot be read and is left out: " + error.detail +
               (unreadable_told_.size() < unreadable_told_max ? "" : "; no more such rows are told of"));
}

}  // namespace holdfast::worker
