#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/asio_loop.hpp"
#include "support/run_until.hpp"
#include "ws/handshake.hpp"

namespace holdfast::test {

/// One end of a TCP connection that the test plays itself, byte by byte; TLS where it is told so. Everything is
/// non-blocking and happens while the loop of the client runs: no thread.
class RawPeer {
 public:
  RawPeer(runtime::AsioLoop& loop, int descriptor) : loop_(&loop), descriptor_(descriptor) {}
  RawPeer(RawPeer&& other) noexcept
      : received(std::move(other.received)),
        ended(other.ended),
        loop_(other.loop_),
        descriptor_(std::exchange(other.descriptor_, -1)),
        ssl_(std::exchange(other.ssl_, nullptr)) {}
  RawPeer& operator=(RawPeer&&) = delete;
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  ~RawPeer() { close(); }

  std::string received;
  bool ended = false;  ///< the other side has closed its half, or reset

  /// Takes what has come.
  void take() {
    char buffer[65536];
    for (;;) {
      const ssize_t got = ssl_ != nullptr ? SSL_read(ssl_, buffer, sizeof buffer)
                                          : ::recv(descriptor_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) {
        received.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      const bool wait = ssl_ != nullptr ? SSL_get_error(ssl_, static_cast<int>(got)) == SSL_ERROR_WANT_READ
                                        : got < 0 && errno == EAGAIN;
      ended = ended || !wait;
      return;
    }
  }

  [[nodiscard]] bool receive_until(std::size_t bytes) {
    return run_until(*loop_, [&] {
      take();
      return received.size() >= bytes;
    });
  }
  [[nodiscard]] bool receive_end() {
    return run_until(*loop_, [&] {
      take();
      return ended;
    });
  }

  /// As much as fits at once; how much that was.
  std::size_t send_some(std::string_view bytes) {
    const ssize_t sent = ssl_ != nullptr
                             ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                             : ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }
  /// All of it, while the client's loop runs.
  [[nodiscard]] bool send(std::string_view bytes) {
    return run_until(*loop_, [&] {
      bytes.remove_prefix(bytes.empty() ? 0 : send_some(bytes));
      return bytes.empty();
    });
  }

  [[nodiscard]] bool accept_tls(SSL_CTX* context) {
    ::SSL* ssl = SSL_new(context);
    SSL_set_fd(ssl, descriptor_);
    bool good = false;
    const bool settled = run_until(*loop_, [&] {
      const int result = SSL_accept(ssl);
      good = result == 1;
      return good || SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ;
    });
    ssl_ = ssl;
    return settled && good;
  }

  /// The request's header, taken out of `received`.
  std::string take_request() {
    std::size_t end = std::string::npos;
    const bool whole = run_until(*loop_, [&] {
      take();
      end = received.find("\r\n\r\n");
      return end != std::string::npos || ended;
    });
    EXPECT_TRUE(whole && end != std::string::npos) << "no request came";
    if (end == std::string::npos) return "";
    std::string request = received.substr(0, end + 4);
    received.erase(0, end + 4);
    return request;
  }

  /// The answer that a good server gives to the request.
  [[nodiscard]] static std::string answer_to(const std::string& request, const std::string& extra = "") {
    const std::string name = "Sec-WebSocket-Key: ";
    const std::size_t at = request.find(name);
    EXPECT_NE(at, std::string::npos) << request;
    const std::string key = request.substr(at + name.size(), 24);
    return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
           ws::accept_for(key) + "\r\n" + extra + "\r\n";
  }
  /// Request taken, answered with 101 and what comes right behind it.
  void upgrade(const std::string& behind = "") { EXPECT_TRUE(send(answer_to(take_request()) + behind)); }

  /// The client's next frame, unmasked: the first byte and the payload.
  std::pair<unsigned, std::string> take_frame() {
    if (!receive_until(6)) return {0, "(nothing came)"};
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(received[i]); };
    EXPECT_EQ(byte(1) & 0x80U, 0x80U) << "a client masks its frames";
    std::size_t size = byte(1) & 0x7FU;
    std::size_t at = 2;
    if (size >= 126) {
      const std::size_t bytes = size == 126 ? 2 : 8;
      if (!receive_until(14)) return {0, "(half a frame came)"};
      size = 0;
      for (std::size_t i = 0; i < bytes; ++i) size = size << 8U | byte(2 + i);
      at += bytes;
    }
    if (!receive_until(at + 4 + size)) return {0, "(half a frame came)"};
    const unsigned first = byte(0);
    std::string payload = received.substr(at + 4, size);
    for (std::size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(payload[i] ^ received[at + i % 4]);
    received.erase(0, at + 4 + size);
    return {first, payload};
  }

  void half_close() { ::shutdown(descriptor_, SHUT_WR); }
  /// So that the other side sees a reset.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }
  void close() {
    SSL_free(std::exchange(ssl_, nullptr));
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  runtime::AsioLoop* loop_;
  int descriptor_;
  ::SSL* ssl_ = nullptr;
};

/// A listening socket on an address of this machine, on a port that was free.
class RawServer {
 public:
  explicit RawServer(runtime::AsioLoop& loop, const std::string& host = "127.0.0.1", std::uint16_t port_wanted = 0,
                     int backlog = 64)
      : loop_(loop), host_(host) {
    const bool six = host.find(':') != std::string::npos;
    descriptor_ = ::socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_storage storage{};
    socklen_t size = 0;
    if (six) {
      auto* address = reinterpret_cast<sockaddr_in6*>(&storage);
      address->sin6_family = AF_INET6;
      address->sin6_port = htons(port_wanted);
      inet_pton(AF_INET6, host.c_str(), &address->sin6_addr);
      size = sizeof *address;
    } else {
      auto* address = reinterpret_cast<sockaddr_in*>(&storage);
      address->sin_family = AF_INET;
      address->sin_port = htons(port_wanted);
      inet_pton(AF_INET, host.c_str(), &address->sin_addr);
      size = sizeof *address;
    }
    good_ =
        ::bind(descriptor_, reinterpret_cast<sockaddr*>(&storage), size) == 0 && ::listen(descriptor_, backlog) == 0;
    socklen_t length = sizeof storage;
    ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&storage), &length);
    port = ntohs(six ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                     : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
  }
  ~RawServer() { stop(); }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  [[nodiscard]] bool good() const { return good_; }
  void stop() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  std::uint16_t port = 0;

  [[nodiscard]] ws::Url url(const std::string& target = "/") const { return ws::Url{false, host_, port, target}; }

  RawPeer accept() {
    int descriptor = -1;
    EXPECT_TRUE(run_until(loop_, [&] {
      descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      return descriptor >= 0;
    })) << "nobody connected";
    return RawPeer(loop_, descriptor);
  }

 private:
  runtime::AsioLoop& loop_;
  std::string host_;
  int descriptor_ = -1;
  bool good_ = false;
};

}  // namespace holdfast::test
