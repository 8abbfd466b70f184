#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::runtime {

class AsioLoop;

/// An IP address and a port, as text: `10.0.0.7:7400`, `[fd00::7]:7400`. No host names: nothing is ever resolved.
struct SocketAddress {
  std::string address;  ///< without brackets
  std::uint16_t port = 0;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_any() const { return address == "0.0.0.0" || address == "::"; }
};
/// Code::usage says what is wrong. Port 0 is allowed.
[[nodiscard]] Result<SocketAddress> parse_socket_address(std::string_view text);

/// Small UDP datagrams on a loop. Sending never waits: what the system does not take is lost, like what the network
/// loses. On the loop's thread.
class Datagrams {
 public:
  static constexpr std::size_t bytes_max = 512;  ///< of one that is received; longer ones are dropped

  /// Port 0 takes a free one. An error says which address cannot be had, and why.
  [[nodiscard]] static Result<std::unique_ptr<Datagrams>> open(AsioLoop& loop, const SocketAddress& listen);
  ~Datagrams();
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// Called for each that comes, at most a hundred in one turn of the loop.
  void receive(std::function<void(std::string_view)> receiver);
  void send(const SocketAddress& to, std::string_view bytes);

 private:
  struct Impl;
  explicit Datagrams(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace holdfast::runtime
