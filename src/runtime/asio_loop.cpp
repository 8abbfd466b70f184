#include "runtime/asio_loop.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <system_error>

#include "holdfast/assert.hpp"
#include "runtime/clock.hpp"

namespace holdfast::runtime {

AsioLoop::AsioLoop(std::uint64_t seed) : random_(seed) {
  const int descriptor = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "cannot make a timer");
  timer_.assign(descriptor);
  wait_for_timer();
}

AsioLoop::~AsioLoop() = default;

Instant AsioLoop::instant() const {
  return boot_now();
}
WallTime AsioLoop::wall() const {
  return wall_now();
}

void AsioLoop::post(Task task) {
  boost::asio::post(context_, std::move(task));
}

bool AsioLoop::later(const Entry& left, const Entry& right) {
  return left.when != right.when ? left.when > right.when : left.id > right.id;
}

TimerId AsioLoop::call_at(Instant when, Task task) {
  const TimerId id = ++last_id_;
  tasks_.emplace(id, std::move(task));
  heap_.push_back({when, id});
  std::push_heap(heap_.begin(), heap_.end(), later);
  if (when < armed_) arm();
  return id;
}

void AsioLoop::cancel(TimerId timer) {
  if (tasks_.erase(timer) == 0) return;
  // Cancelled entries are kept to at most half of the heap.
  if (heap_.size() > 64 && heap_.size() > 2 * tasks_.size()) {
    std::erase_if(heap_, [this](const Entry& entry) { return !tasks_.contains(entry.id); });
    std::make_heap(heap_.begin(), heap_.end(), later);
  }
}

void AsioLoop::wait_for_timer() {
  timer_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;  // the loop is going down
    std::uint64_t expirations = 0;
    while (::read(timer_.native_handle(), &expirations, sizeof expirations) < 0 && errno == EINTR) {
    }
    run_due();
    wait_for_timer();
  });
}

void AsioLoop::run_due() {
  armed_ = Instant::max();
  const Instant now = boot_now();
  // Only what was due on entry: a timer that sets itself again at once must not starve sockets.
  const TimerId newest = last_id_;
  while (!heap_.empty() && heap_.front().when <= now && heap_.front().id <= newest) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const TimerId id = heap_.back().id;
    heap_.pop_back();
    const auto found = tasks_.find(id);
    if (found == tasks_.end()) continue;  // cancelled
    const Task task = std::move(found->second);
    tasks_.erase(found);
    task();
  }
  arm();
}

void AsioLoop::arm() {
  while (!heap_.empty() && !tasks_.contains(heap_.front().id)) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
  if (heap_.empty() || heap_.front().when >= armed_) return;
  armed_ = heap_.front().when;
  // A zero time would disarm the timer: anything due is due in one nanosecond.
  const auto at = std::max<Duration::rep>(armed_.time_since_epoch().count(), 1);
  itimerspec spec{};
  spec.it_value.tv_sec = at / 1'000'000'000;
  spec.it_value.tv_nsec = at % 1'000'000'000;
  const int result = timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &spec, nullptr);
  HOLDFAST_ASSERT(result == 0, "a valid time is accepted by timerfd");
}

void AsioLoop::run() {
  const auto guard = boost::asio::make_work_guard(context_);
  context_.restart();
  context_.run();
}

void AsioLoop::stop() {
  context_.stop();
}

}  // namespace holdfast::runtime
