#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ws/address.hpp"
#include "ws/connection.hpp"
#include "ws/engine.hpp"
#include "ws/handshake.hpp"
#include "ws/socket.hpp"

namespace holdfast::ws {

class Peer;

/// All that a connection needs until it is open: name → address race → TLS → upgrade, each with its own limit.
/// Belongs to its Peer, which destroys it when it calls Peer::opened(), end() or fail(): after these, an Opening
/// touches nothing of its own.
class Opening {
 public:
  Opening(Peer& peer, ConnectOptions options);

  void start();
  /// The peer's socket is readable or writable.
  void on_ready();
  void on_deadline(Instant now);

 private:
  enum class Phase : std::uint8_t { resolving, connecting, tls, upgrading };
  struct Attempt {
    Socket socket;
    Address address;
    Instant deadline;
    bool live = true;
  };

  void resolve();
  void on_resolved(Result<std::vector<std::string>> names);
  void try_next_address(Instant now);
  std::optional<int> start_attempt(const Address& address, Instant now);
  void on_attempt_ready(std::size_t index);
  void lose_attempt(Attempt& attempt, std::string trouble);
  void win(Attempt& attempt);
  void race_on(Instant now);
  void set_race_deadline();

  void start_tls();
  void step_tls();
  void start_upgrade();
  void send_request();
  void read_response();
  void settle(ResponseReader::State state);
  void settle_late();
  void fail_upgrade();
  /// Whether the socket wants something before it can go on; then this waits for it.
  bool waits_for(Transfer::Kind kind);

  void enter(Phase phase, Duration limit);
  void fail(Code code, std::string detail);

  Peer& peer_;
  ConnectOptions options_;
  Phase phase_ = Phase::resolving;
  std::string request_;
  std::size_t request_sent_ = 0;
  std::string key_;
  std::vector<Address> addresses_;
  std::size_t next_address_ = 0;
  Instant next_start_ = Instant::max();
  std::vector<Attempt> attempts_;
  std::string troubles_;
  bool out_of_files_ = false;
  TlsReport tls_report_;
  std::optional<ResponseReader> response_;
};

/// The system's resolver, through Asio.
[[nodiscard]] Resolve system_resolver(boost::asio::io_context& context);

}  // namespace holdfast::ws
