#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/asio_loop.hpp"
#include "support/peer.hpp"
#include "support/run_until.hpp"
#include "ws/engine.hpp"

namespace holdfast::test {

/// One connection of the engine and all that it told, in order.
class Client final : public ws::Events {
 public:
  struct Heard {
    std::string data;
    bool binary = false;
    bool operator==(const Heard&) const = default;
  };

  std::optional<ws::Opened> opened;
  std::vector<Heard> messages;
  std::optional<ws::Closed> closed;
  int times_opened = 0;
  int times_closed = 0;
  std::function<void(const ws::Message&)> instead_of_keeping;  ///< for more messages than one wants to keep
  std::unique_ptr<ws::Connection> connection;

  [[nodiscard]] std::vector<std::string> texts() const;
  /// One line about how it ended, for failure messages.
  [[nodiscard]] std::string how_it_ended() const;

  void on_open(const ws::Opened& what) override;
  void on_message(const ws::Message& message) override;
  void on_closed(const ws::Closed& how) override;
};

/// The engine on a real loop, driven by conditions rather than by time.
class Network {
 public:
  runtime::AsioLoop loop{1};
  ws::Engine engine{loop};

  std::unique_ptr<Client> connect(const Peer& peer, const std::string& target);
  std::unique_ptr<Client> connect(ws::ConnectOptions options);
  /// What connect() above uses: the URL, and the peer's certificate as the authority.
  static ws::ConnectOptions options_for(const Peer& peer, const std::string& target);
  static ws::ConnectOptions options_for(const std::string& url);

  [[nodiscard]] bool until_open(const Client& client);
  [[nodiscard]] bool until_closed(const Client& client);
  /// Until it has heard so many messages or has ended.
  void until_heard(const Client& client, std::size_t messages);
};

}  // namespace holdfast::test
