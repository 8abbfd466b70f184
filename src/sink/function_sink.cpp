#include "holdfast/function_sink.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "runtime/clock.hpp"

namespace holdfast {

FunctionSink::FunctionSink(Function function, std::function<Instant()> clock)
    : function_(std::move(function)), clock_(std::move(clock)) {}

std::optional<Error> FunctionSink::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool FunctionSink::call(const Record& record) {
  // Each call is an effect and may take long: the lease is asked before each (S7). What was left out stays left
  // out, so the belief must not come back.
  if (record.guard != nullptr && *record.guard != nullptr &&
      !(*record.guard)->holds(clock_ ? clock_() : runtime::boot_now())) {
    (*record.guard)->revoke();
    return true;
  }
  std::string why;
  try {
    function_(record);
    return true;
  } catch (const std::exception& thrown) {
    why = thrown.what();
  } catch (...) {
    why = "something that is no std::exception";
  }
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = Error(Code::internal, "the message handler threw: " + why);
  failed_.store(true, std::memory_order_release);
  return false;
}

Position FunctionSink::write(std::span<const Record> records) {
  if (records.empty()) return acknowledged();
  Position first = 0;
  Position last = 0;
  {
    const std::lock_guard lock(mutex_);
    first = accepted_ + 1;
    last = accepted_ += records.size();
    running_.push_back(first);
  }
  Position next = first;
  for (const Record& record : records) {
    if (failed_.load(std::memory_order_acquire) || !call(record)) break;
    ++next;
  }
  {
    const std::lock_guard lock(mutex_);
    const auto mine = std::find(running_.begin(), running_.end(), first);
    if (next > last) {
      running_.erase(mine);
    } else {
      *mine = next;  // stays: nothing from here on is ever acknowledged
    }
    const Position done = running_.empty() ? accepted_ : *std::min_element(running_.begin(), running_.end()) - 1;
    acknowledged_.store(std::max(done, acknowledged_.load()), std::memory_order_release);
  }
  if (listener_) listener_();
  return last;
}

}  // namespace holdfast
