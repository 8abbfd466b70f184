#include "ws/address.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace holdfast::ws {

std::string Address::to_string() const {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const int failed = getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host.data(), host.size(),
                                 port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  if (failed != 0) return "?";
  const std::string name = host.data();
  return (family() == AF_INET6 ? "[" + name + "]" : name) + ":" + port.data();
}

std::optional<Address> parse_address(const std::string& text, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(text.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  return address;
}

std::vector<Address> interleave(const std::vector<Address>& addresses) {
  std::vector<Address> first;
  std::vector<Address> second;
  for (const Address& address : addresses) {
    (address.family() == addresses.front().family() ? first : second).push_back(address);
  }
  std::vector<Address> result;
  for (std::size_t i = 0; i < first.size() || i < second.size(); ++i) {
    if (i < first.size()) result.push_back(first[i]);
    if (i < second.size()) result.push_back(second[i]);
  }
  return result;
}

std::string connect_trouble(int error, const Address& address) {
  const std::string where = address.to_string();
  switch (error) {
    case ECONNREFUSED:
      return "connection refused by " + where;
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "no route to " + where;
    case ETIMEDOUT:
      return "no answer from " + where;
    case EMFILE:
    case ENFILE:
      return "too many open files to connect to " + where + " (raise the limit: ulimit -n)";
    default:
      return "cannot connect to " + where + ": " + std::generic_category().message(error);
  }
}

}  // namespace holdfast::ws
