#include "serve/invocations.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::serve {

namespace {

constexpr std::size_t remembered_most = 1000;
/// More than a clock is put right by while it runs, less than leases last.
constexpr Duration stop_least = std::chrono::milliseconds(500);

}  // namespace

Invocations::Invocations(Loop& loop) : loop_(loop), clock_difference_(clock_difference()) {}

Invocations::~Invocations() {
  for (const Expecting& each : expecting_) loop_.cancel(each.timer);
}

void Invocations::begun(const std::string& id) {
  over();
  std::erase(over_, id);
  current_ = id;
  std::list<Expecting> here;
  for (auto each = expecting_.begin(); each != expecting_.end();) {
    const auto next = std::next(each);
    if (each->id == id) here.splice(here.end(), expecting_, each);
    each = next;
  }
  for (const Expecting& each : here) {
    loop_.cancel(each.timer);
    each.called(true);
  }
}

void Invocations::over() {
  if (current_.empty()) return;
  over_.push_back(std::exchange(current_, {}));
  if (over_.size() > remembered_most) over_.pop_front();
}

bool Invocations::is_over(const std::string& id) const {
  return std::ranges::find(over_, id) != over_.end();
}

void Invocations::when_known(const std::string& id, Duration limit, std::function<void(bool)> called) {
  if (is_current(id) || is_over(id)) return called(true);
  const auto place = expecting_.insert(expecting_.end(), {id, 0, std::move(called)});
  place->timer = loop_.call_after(limit, [this, place] {
    const auto late = std::move(place->called);
    expecting_.erase(place);
    late(false);
  });
}

void Invocations::gave(const Receipt& receipt, const std::string& invocation) {
  batches_.insert_or_assign(receipt.to_string(), Batch{receipt, invocation});
}

std::vector<Receipt> Invocations::take_left_behind(const std::string& in_doubt) {
  std::vector<Receipt> left;
  for (const auto& [text, batch] : batches_) {
    if (!is_current(batch.invocation) && batch.invocation != in_doubt) left.push_back(batch.receipt);
  }
  std::erase_if(batches_, [this](const auto& entry) { return !is_current(entry.second.invocation); });
  return left;
}

Duration Invocations::clock_difference() const {
  return loop_.wall().time_since_epoch() - loop_.instant().time_since_epoch();
}

std::uint64_t Invocations::stops() {
  const Duration difference = clock_difference();
  if (difference - std::exchange(clock_difference_, difference) > stop_least) ++stops_;
  return stops_;
}

}  // namespace holdfast::serve
