#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::runtime {

/// As the system's calls take it.
struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// An IP address and a port, as text: `10.0.0.7:7400`, `[fd00::7]:7400`. No host names: nothing is ever resolved.
struct SocketAddress {
  std::string address;  ///< without brackets
  std::uint16_t port = 0;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_any() const { return address == "0.0.0.0" || address == "::"; }
  [[nodiscard]] bool is_loopback() const;      ///< nobody reaches it from another machine
  [[nodiscard]] SystemAddress system() const;  ///< length 0 where it is no address
};
/// Code::usage says what is wrong. Port 0 is allowed.
[[nodiscard]] Result<SocketAddress> parse_socket_address(std::string_view text);

/// The port that a socket is bound to; 0 where that cannot be told.
[[nodiscard]] std::uint16_t bound_port(int descriptor);

}  // namespace holdfast::runtime
