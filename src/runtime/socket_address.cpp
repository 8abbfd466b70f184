#include "runtime/socket_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>

namespace holdfast::runtime {

SystemAddress SocketAddress::system() const {
  SystemAddress result;
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    std::memcpy(&result.storage, &four, sizeof four);
    result.length = sizeof four;
  } else if (inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    std::memcpy(&result.storage, &six, sizeof six);
    result.length = sizeof six;
  }
  return result;
}

bool SocketAddress::is_loopback() const {
  in6_addr six{};
  if (inet_pton(AF_INET6, address.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return address.starts_with("127.");
}

std::string SocketAddress::text() const {
  const bool six = address.find(':') != std::string::npos;
  return (six ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

Result<SocketAddress> parse_socket_address(std::string_view text) {
  const auto wrong = [&] {
    return fail(Code::usage, "\"" + std::string(text) +
                                 "\" is no IP address with a port: write it like 10.0.0.7:7400 or [fd00::7]:7400");
  };
  SocketAddress result;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  std::string_view address = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) return wrong();
  const bool brackets = address.starts_with('[') && address.ends_with(']');
  if (brackets) address = address.substr(1, address.size() - 2);
  result.address = address;
  const SystemAddress known = result.system();
  if (known.length == 0 || brackets != (known.family() == AF_INET6)) return wrong();
  return result;
}

std::uint16_t bound_port(int descriptor) {
  SystemAddress bound;
  bound.length = sizeof bound.storage;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0) return 0;
  if (bound.family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port);
  if (bound.family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&bound.storage)->sin6_port);
  return 0;
}

}  // namespace holdfast::runtime
