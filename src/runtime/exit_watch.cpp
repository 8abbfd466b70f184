#include "runtime/exit_watch.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

#include "holdfast/assert.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/spawn.hpp"

namespace holdfast::runtime {

struct ExitWatch::Impl {
  explicit Impl(AsioLoop& loop, std::function<void()> on_exit_)
      : descriptor(loop.context()), on_exit(std::move(on_exit_)) {}

  boost::asio::posix::stream_descriptor descriptor;
  std::function<void()> on_exit;
};

ExitWatch::ExitWatch(AsioLoop& loop, const Child& child, std::function<void()> on_exit)
    : impl_(std::make_shared<Impl>(loop, std::move(on_exit))) {
  // A descriptor of its own: Asio closes what it was given. The child is not reaped yet, so its id is its own.
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0));
  HOLDFAST_ASSERT(descriptor >= 0, "a child that was not reaped has a descriptor");
  impl_->descriptor.assign(descriptor);
  impl_->descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                               [impl = impl_](const boost::system::error_code& error) {
                                 if (!error && impl->on_exit) std::exchange(impl->on_exit, {})();
                               });
}

ExitWatch::~ExitWatch() {
  impl_->on_exit = {};
  impl_->descriptor.close();
}

}  // namespace holdfast::runtime
