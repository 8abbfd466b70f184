#include "ws/engine.hpp"

#include <utility>

#include "ws/hub.hpp"
#include "ws/opening.hpp"
#include "ws/peer.hpp"

namespace holdfast::ws {
namespace {

/// What the owner holds: the connection lives on without it only to send its last bytes.
class Handle final : public Connection {
 public:
  explicit Handle(std::shared_ptr<Peer> peer) : peer_(std::move(peer)) {}
  ~Handle() override { peer_->abandon(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  bool send(std::string_view payload, bool binary) override { return peer_->send(payload, binary); }
  void close(std::uint16_t code, std::string_view reason) override { peer_->close(code, reason); }
  void pause() override { peer_->pause(); }
  void resume() override { peer_->resume(); }

 private:
  std::shared_ptr<Peer> peer_;
};

}  // namespace

Engine::Engine(runtime::AsioLoop& loop, EngineOptions options) {
  if (!options.resolve) options.resolve = system_resolver(loop.context());
  hub_ = std::make_shared<Hub>(loop, std::move(options));
}

Engine::~Engine() {
  hub_->stop();
}

std::unique_ptr<Connection> Engine::connect(ConnectOptions options, Events& events) {
  auto peer = std::make_shared<Peer>(*hub_, events, options.limits);
  hub_->add(peer);
  peer->open(std::move(options));
  return std::make_unique<Handle>(std::move(peer));
}

std::size_t Engine::connections() const {
  return hub_->peers();
}

}  // namespace holdfast::ws
