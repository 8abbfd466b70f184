#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"
#include "runtime/socket_address.hpp"

namespace holdfast::runtime {

class AsioLoop;

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
