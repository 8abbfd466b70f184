#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::bench {

/// A WebSocket server in a process of its own, on bare sockets, that costs the clients' core nothing: it upgrades
/// and then writes blocks of frames that were built before, as fast as the socket takes them. Runs from
/// construction to destruction. Make it while this process has one thread.
///
/// What a connection gets depends on its path:
///   /blast?size=S&count=N   N text messages of S bytes, then close 1000
///   /feed?count=N           N JSON messages {"seq":…,…} of 120 bytes, seq from 1,000,000,000 on, then close 1000
///   /idle                   nothing
class Blaster {
 public:
  /// With a certificate it speaks TLS (OpenSSL).
  explicit Blaster(const std::string& certificate_file = "", const std::string& key_file = "");
  ~Blaster();
  Blaster(const Blaster&) = delete;
  Blaster& operator=(const Blaster&) = delete;

  /// It listens on several ports, so that tens of thousands of connections in a row do not run out of the client's
  /// port numbers.
  [[nodiscard]] std::string url(const std::string& target, std::size_t listener = 0) const;
  static constexpr std::size_t listeners = 16;

  static constexpr std::int64_t first_seq = 1'000'000'000;
  static constexpr std::size_t feed_message_bytes = 120;

 private:
  bool tls_;
  pid_t pid_ = -1;
  std::vector<std::uint16_t> ports_;
};

}  // namespace holdfast::bench
