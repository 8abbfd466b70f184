#include "sink/descriptor_output.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace holdfast::sink {
namespace {

constexpr int look_every_ms = 50;  // at give_up

}  // namespace

Output::Outcome DescriptorOutput::probe() {
  pollfd ready{descriptor_, POLLOUT, 0};
  if (::poll(&ready, 1, 0) >= 0 && (ready.revents & (POLLERR | POLLNVAL)) == 0) return {};
  return Fault{Error(Code::unavailable, "cannot write to standard output: whoever read it is gone"), false};
}

Output::Outcome DescriptorOutput::write(std::string_view records, const std::atomic<bool>& give_up) {
  std::string again;
  std::string_view left = records;
  if (torn_) {  // ends the line that was begun, so that only that one is broken
    again = "\n" + std::string(records);
    left = again;
  }
  const std::size_t all = left.size();
  while (!left.empty()) {
    int error = 0;
    pollfd ready{descriptor_, POLLOUT, 0};
    const int polled = ::poll(&ready, 1, look_every_ms);
    if (polled > 0) {
      const ssize_t written = ::write(descriptor_, left.data(), std::min(left.size(), pipe_bytes));
      if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
      if (written < 0 && errno != EINTR && errno != EAGAIN) error = errno;
    } else if (polled < 0 && errno != EINTR) {
      error = errno;
    }
    if (error == 0 && give_up && !left.empty()) error = ETIMEDOUT;
    if (error != 0) {
      torn_ = torn_ || left.size() != all;
      const char* why = error == EPIPE ? "whoever read it is gone" : std::strerror(error);
      return Fault{Error(Code::unavailable, std::string("cannot write to standard output: ") + why), false};
    }
  }
  torn_ = false;
  return {};
}

}  // namespace holdfast::sink
