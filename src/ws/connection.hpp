#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"
#include "ws/url.hpp"

namespace holdfast::ws {

/// Bounds on one connection. Every phase has its own time limit; a limit that runs out ends the connection.
struct Limits {
  Duration resolve = std::chrono::seconds(5);
  Duration connect = std::chrono::seconds(5);  ///< per address; the next one starts 250 ms after (RFC 8305)
  Duration tls = std::chrono::seconds(10);
  Duration upgrade = std::chrono::seconds(10);
  Duration close = std::chrono::seconds(5);
  Duration ping_every = std::chrono::seconds(20);
  Duration dead_after = std::chrono::seconds(45);  ///< without any frame
  std::size_t message_bytes = std::size_t{1} << 20U;
  std::size_t header_bytes = std::size_t{16} << 10U;
  std::size_t send_queue_bytes = std::size_t{1} << 20U;
};

struct ConnectOptions {
  Url url;
  std::vector<std::pair<std::string, std::string>> headers;  ///< values may be secrets: never logged
  std::vector<std::string> subprotocols;
  std::string ca_file;  ///< certificates to trust instead of the system's; empty: the system's
  Limits limits;
};

struct Opened {
  std::string subprotocol;  ///< as chosen by the server; empty: none
};

struct Message {
  bool binary = false;
  std::string_view data;  ///< UTF-8 checked where text; valid during the call, until on_batch_end()
};

/// How a connection ended. Told exactly once.
struct Closed {
  enum class Kind {
    refused,   ///< the server answered the upgrade with something else (status, retry_after, body)
    closed,    ///< close frame from the peer (code, reason); 1005 where it had none
    protocol,  ///< we closed it: 1002, 1007, 1009 (code, reason)
    failed,    ///< name, route, TLS, time limit, reset: `error` says which
    local,     ///< we asked for it
  };
  Kind kind = Kind::failed;
  std::uint16_t code = 1006;
  std::string reason;
  int http_status = 0;
  std::optional<Duration> retry_after;
  std::string body;  ///< first 512 bytes of the answer, control characters made harmless
  Error error;
};

/// What the owner of a connection hears, on its loop's thread, never inside a call of Connection.
class Events {
 public:
  virtual ~Events() = default;
  virtual void on_open(const Opened& opened) = 0;
  /// Before each turn of reading: an owner that has no room for more calls pause() here, and nothing is read.
  virtual void before_read() {}
  virtual void on_message(const Message& message) = 0;
  /// After the messages of one read: views handed out since the last one end here.
  virtual void on_batch_end() {}
  virtual void on_closed(const Closed& closed) = 0;
};

/// One outbound WebSocket connection. All calls on its loop's thread. Destroying it cuts the connection at
/// once, without further events; it may be destroyed inside any of its events.
class Connection {
 public:
  virtual ~Connection() = default;
  /// False: not open, or more than send_queue_bytes are waiting; nothing was queued.
  virtual bool send(std::string_view payload, bool binary) = 0;
  /// Starts the close handshake; on_closed() follows within limits.close. Messages that arrive meanwhile are
  /// no longer delivered.
  virtual void close(std::uint16_t code, std::string_view reason) = 0;
  /// Stops reading (pings and liveness rest too); TCP holds the peer back. The rest of the messages of the
  /// current read are still delivered.
  virtual void pause() = 0;
  virtual void resume() = 0;
};

/// Makes connections on one loop. The engine is one kind; a simulator's network is another.
class Connector {
 public:
  virtual ~Connector() = default;
  /// Starts at once; `events` must outlive the connection.
  virtual std::unique_ptr<Connection> connect(ConnectOptions options, Events& events) = 0;
};

}  // namespace holdfast::ws
