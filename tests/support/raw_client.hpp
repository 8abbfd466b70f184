#pragma once
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/asio_loop.hpp"
#include "runtime/listener.hpp"
#include "support/run_until.hpp"

namespace holdfast::test {

/// The client's end of a connection, which the test plays itself, byte by byte, while the server's loop runs.
class RawClient {
 public:
  RawClient(runtime::AsioLoop& loop, const runtime::ListenAddress& to) : loop_(&loop) {
    if (to.is_unix()) {
      sockaddr_un name{};
      name.sun_family = AF_UNIX;
      std::memcpy(name.sun_path, to.path.data(), to.path.size());
      connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&name), sizeof name);
    } else {
      const runtime::SystemAddress address = to.tcp.system();
      connect(address.family(), address.get(), address.length);
    }
  }
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept
      : received(std::move(other.received)),
        ended(other.ended),
        loop_(other.loop_),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  RawClient& operator=(RawClient&&) = delete;

  std::string received;
  bool ended = false;  ///< the server has closed its half, or reset

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        run_for(*loop_, std::chrono::milliseconds(1));
      } else {
        return;  // the server has gone: the test sees what it had to say
      }
    }
  }
  void take() {
    char buffer[65536];
    for (;;) {
      const ssize_t got = ::recv(descriptor_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) {
        received.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      ended = ended || got == 0 || errno != EAGAIN;
      return;
    }
  }
  [[nodiscard]] bool receives(std::string_view text) {
    return run_until(*loop_, [&] {
      take();
      return received.find(text) != std::string::npos;
    });
  }
  [[nodiscard]] bool is_ended() {
    return run_until(*loop_, [&] {
      take();
      return ended;
    });
  }
  /// What there is to read is left where it is: the server's writes wait.
  void read_little() {
    const int bytes = 4096;
    (void)::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  void close_half() { ::shutdown(descriptor_, SHUT_WR); }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  void connect(int family, const sockaddr* address, socklen_t length) {
    descriptor_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(descriptor_, address, length), 0) << std::strerror(errno);
  }

  runtime::AsioLoop* loop_;
  int descriptor_ = -1;
};

}  // namespace holdfast::test
