#pragma once
#include <memory>
#include <string>
#include <utility>

#include "runtime/datagrams.hpp"
#include "worker/poke.hpp"

namespace holdfast::worker {

/// Pokes as UDP datagrams.
class UdpPokes final : public PokeNet {
 public:
  /// `advertise` is what others are told; its port 0 stands for the one that is listened on. `listen` may be empty:
  /// then it is the same. Code::usage says which of them is wrong, and why.
  [[nodiscard]] static Result<std::unique_ptr<UdpPokes>> open(runtime::AsioLoop& loop, const std::string& advertise,
                                                              const std::string& listen);
  /// Whether open() could succeed, as far as the texts tell.
  [[nodiscard]] static Result<void> check(const std::string& advertise, const std::string& listen);

  [[nodiscard]] std::string place() const override { return advertised_.text(); }
  void receive(std::function<void(std::string_view)> receiver) override { socket_->receive(std::move(receiver)); }
  void send(const std::string& place, const std::string& text) override;

 private:
  UdpPokes(std::unique_ptr<runtime::Datagrams> socket, runtime::SocketAddress advertised)
      : socket_(std::move(socket)), advertised_(std::move(advertised)) {}

  const std::unique_ptr<runtime::Datagrams> socket_;
  const runtime::SocketAddress advertised_;
};

}  // namespace holdfast::worker
