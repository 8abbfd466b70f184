#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::ws {

/// Where a socket can connect to.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] int family() const { return storage.ss_family; }
  /// "127.0.0.1:81", "[::1]:81"
  [[nodiscard]] std::string to_string() const;
};

/// From a literal; nothing where the text is a name.
[[nodiscard]] std::optional<Address> parse_address(const std::string& text, std::uint16_t port);

/// RFC 8305 section 4: families take turns, beginning with that of the first address; within one the order stays.
[[nodiscard]] std::vector<Address> interleave(const std::vector<Address>& addresses);

/// "connection refused by 127.0.0.1:81" for what connect() gave.
[[nodiscard]] std::string connect_trouble(int error, const Address& address);

}  // namespace holdfast::ws
