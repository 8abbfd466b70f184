#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ws/connection.hpp"
#include "ws/frame.hpp"
#include "ws/socket.hpp"

namespace holdfast::ws {

class Hub;
class Opening;

/// One connection from its first address to the end of its TCP stream.
///
/// opening → open → closing (our close frame is out, theirs is awaited) → lingering (the owner has been told; the
/// last bytes go out and the peer ends the stream) → dead. Every state but `open` and `dead` has a deadline; `open`
/// has one as long as it is read. The owner is told exactly once, always from an event of the loop.
///
/// Owned by its Hub and by the handlers that wait for its socket; the owner's Connection is only a handle. An idle
/// one has no buffer: all that it owns is in this object, and OpenSSL's state.
class Peer : public std::enable_shared_from_this<Peer> {
 public:
  static constexpr std::size_t no_index = ~std::size_t{0};

  Peer(Hub& hub, Events& events, const Limits& limits);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void open(ConnectOptions options);

  // For the handle.
  bool send(std::string_view payload, bool binary);
  void close(std::uint16_t code, std::string_view reason);
  void pause();
  void resume();
  void abandon();  ///< the handle is gone

  // For the hub.
  void cut();  ///< at once, telling nobody
  void on_deadline(Instant now);
  std::size_t hub_index = no_index;
  std::size_t deadline_index = no_index;

  // For the opening.
  [[nodiscard]] bool dead() const { return hub_ == nullptr; }
  [[nodiscard]] Hub& hub() { return *hub_; }
  [[nodiscard]] Socket& socket() { return socket_; }
  [[nodiscard]] Opening* opening() { return opening_.get(); }  ///< null once it is over
  void wait_for_read();
  void wait_for_write();
  /// `rest`: what came behind the handshake.
  void opened(const Opened& opened, std::string_view rest);
  /// Tells the owner and cuts. `this` may have no owner left afterwards.
  void end(const Closed& closed);
  void fail(Error error);

 private:
  enum class State : std::uint8_t { opening, open, closing, lingering, dead };
  struct Output {
    std::string bytes;
    std::size_t sent = 0;
    std::string pong;  // the latest ping, to be answered when there is room
    bool has_pong = false;
    [[nodiscard]] std::size_t waiting() const { return bytes.size() - sent; }
  };

  void on_readable();
  void on_writable();
  void read_frames();
  bool walk(std::string_view input);
  bool take_close(const Found& found, bool delivered);
  bool take_error(const Found& found, bool delivered);
  bool end_batch(bool delivered);
  void read_on();
  void on_stream_end(const Transfer& transfer);
  void linger(const Closed& told);
  void discard();

  void put(Opcode opcode, std::string_view payload);
  void put_close(std::uint16_t code, std::string_view reason);
  void transmit();
  void answer_ping(std::string_view payload);
  void flush();
  void on_flushed();
  void write_failed();

  void tell(const Closed& closed);
  void check_liveness(Instant now);
  void schedule_liveness();

  Hub* hub_;
  Events* events_;  // null once the owner has been told, or has gone
  Socket socket_;
  FrameReader reader_;
  std::unique_ptr<Opening> opening_;
  std::unique_ptr<Output> output_;
  Instant last_heard_{};
  Instant next_ping_{};
  Duration ping_every_;
  Duration dead_after_;
  Duration close_limit_;
  std::size_t send_queue_bytes_max_;
  std::uint32_t discarded_bytes_ = 0;
  State state_ = State::opening;
  bool waits_for_read_ = false;
  bool waits_for_write_ = false;
  bool paused_ = false;
  bool reads_after_write_ = false;  // TLS has something to say before it can hear
  bool failing_ = false;
};

}  // namespace holdfast::ws
