#include "sink/descriptor_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace holdfast::sink {
namespace {

constexpr int look_every_ms = 50;  // at the permission

/// The pipe behind a descriptor, opened again; -1 where it is something else, or cannot be.
int open_again(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return -1;
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

Output::Fault trouble(int error) {
  const bool gone = error == EPIPE || error == ECONNRESET;
  const char* why = gone ? "whoever read it is gone" : std::strerror(error);
  Output::Fault fault{Error(Code::unavailable, std::string("cannot write to standard output: ") + why)};
  fault.for_good = gone || error == EBADF;
  return fault;
}

}  // namespace

DescriptorOutput::DescriptorOutput(int descriptor) : given_(descriptor), own_(open_again(descriptor)) {}

DescriptorOutput::~DescriptorOutput() {
  close();
}

void DescriptorOutput::close() {
  if (own_ >= 0) ::close(own_);
  own_ = -1;
}

Output::Outcome DescriptorOutput::probe() {
  pollfd ready{own_ >= 0 ? own_ : given_, POLLOUT, 0};
  if (::poll(&ready, 1, 0) >= 0 && (ready.revents & (POLLERR | POLLNVAL)) == 0) return {};
  return trouble(EPIPE);
}

Output::Outcome DescriptorOutput::write(std::string_view records, Permission& permission) {
  std::string again;
  std::string_view left = records;
  if (torn_) {  // ends the line that was begun, so that only that one is broken
    again = "\n" + std::string(records);
    left = again;
  }
  const std::size_t all = left.size();
  const auto ended_by = [&](Fault fault) {
    const std::size_t written = all - left.size();
    torn_ = torn_ ? written != 1 : written != 0;
    return fault;
  };
  const int descriptor = own_ >= 0 ? own_ : given_;
  while (!left.empty()) {
    pollfd ready{descriptor, POLLOUT, 0};
    const int polled = ::poll(&ready, 1, look_every_ms);
    if (polled < 0 && errno != EINTR) return ended_by(trouble(errno));
    // S7: asked after each wait, and right before each write.
    if (!permission.holds()) {
      Fault fault;
      fault.lease_over = true;
      return ended_by(fault);
    }
    if (polled > 0) {
      const ssize_t written = ::write(descriptor, left.data(), std::min(left.size(), pipe_bytes));
      if (written < 0 && errno != EINTR && errno != EAGAIN) return ended_by(trouble(errno));
      if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
    }
    if (!left.empty() && permission.given_up()) return ended_by(trouble(ETIMEDOUT));
  }
  torn_ = false;
  return {};
}

}  // namespace holdfast::sink
