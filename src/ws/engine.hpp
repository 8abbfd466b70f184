#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/error.hpp"
#include "ws/connection.hpp"

namespace holdfast::runtime {
class AsioLoop;
}

namespace holdfast::ws {

/// Finds the addresses of a host name, written as literals ("192.0.2.1", "2001:db8::1"), the preferred one
/// first. Calls `done` once, on the loop's thread, inside the call or later.
using ResolveDone = std::function<void(Result<std::vector<std::string>>)>;
using Resolve = std::function<void(const std::string& host, ResolveDone done)>;

struct EngineOptions {
  std::size_t read_buffer_bytes = std::size_t{256} << 10U;  ///< one per engine, shared by its connections
  std::size_t read_bytes_per_turn = std::size_t{1} << 20U;  ///< then the other connections of the loop have theirs
  Resolve resolve;                                          ///< empty: the system's resolver
};

class Hub;

/// RFC 6455 client connections on one loop, ws:// and wss://, frames walked in place in one buffer that all
/// connections of the engine share.
///
/// Used on the loop's thread only. The loop must outlive it. Destroying it cuts every connection without
/// further events; Connection objects that are still there become inert and may be destroyed later.
class Engine final : public Connector {
 public:
  explicit Engine(runtime::AsioLoop& loop, EngineOptions options = {});
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::unique_ptr<Connection> connect(ConnectOptions options, Events& events) override;

  /// Sockets that are open, being opened or being closed.
  [[nodiscard]] std::size_t connections() const;

 private:
  std::shared_ptr<Hub> hub_;
};

}  // namespace holdfast::ws
