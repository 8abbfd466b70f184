#include "runtime/signals.hpp"

#include <boost/asio/signal_set.hpp>
#include <utility>

#include "runtime/asio_loop.hpp"

namespace holdfast::runtime {

namespace {

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

struct Signals::Impl : std::enable_shared_from_this<Signals::Impl> {
  Impl(AsioLoop& loop, std::function<void(int)> on_signal_, const std::vector<int>& signals)
      : set(loop.context()), on_signal(std::move(on_signal_)) {
    for (const int each : signals) {
      if (each != SIGHUP || !is_ignored(each)) set.add(each);
    }
  }

  void wait() {
    set.async_wait([self = shared_from_this()](const boost::system::error_code& error, int signal) {
      if (error) return;  // cancelled: being destroyed
      self->wait();
      if (self->on_signal) self->on_signal(signal);
    });
  }

  boost::asio::signal_set set;
  std::function<void(int)> on_signal;
};

Signals::Signals(AsioLoop& loop, std::function<void(int signal)> on_signal, const std::vector<int>& signals)
    : impl_(std::make_shared<Impl>(loop, std::move(on_signal), signals)) {
  impl_->wait();
}

Signals::~Signals() {
  impl_->on_signal = nullptr;
  impl_->set.cancel();
  impl_->set.clear();
}

void stop_this_process() {
  std::raise(SIGSTOP);
}

void ignore_broken_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

void end_by_broken_pipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

}  // namespace holdfast::runtime
