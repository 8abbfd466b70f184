#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/loop.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/secure_random.hpp"
#include "ws/engine.hpp"
#include "ws/frame.hpp"
#include "ws/socket.hpp"
#include "ws/tls.hpp"

namespace holdfast::ws {

class Peer;

/// What the connections of one engine share: the loop, the read buffer, TLS profiles, and one timer for all their
/// deadlines. Peers hold a plain pointer to it, which stop() and cutting a peer set to null.
class Hub : public std::enable_shared_from_this<Hub> {
 public:
  Hub(runtime::AsioLoop& loop, EngineOptions options);
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  /// Cuts every peer and frees what is shared. Nothing happens here afterwards.
  void stop();

  void add(std::shared_ptr<Peer> peer);
  void remove(Peer& peer);
  /// Each peer has one deadline, or none (Instant::max()).
  void set_deadline(Peer& peer, Instant when);

  /// The buffer that is being read into, made on first use.
  [[nodiscard]] char* buffer();
  [[nodiscard]] std::size_t buffer_bytes() const { return options_.read_buffer_bytes; }
  [[nodiscard]] const EngineOptions& options() const { return options_; }
  [[nodiscard]] runtime::AsioLoop& loop() { return loop_; }
  [[nodiscard]] std::size_t peers() const { return peers_.size(); }
  [[nodiscard]] Mask mask() { return random_.take<4>(); }
  [[nodiscard]] runtime::SecureRandom& random() { return random_; }

  Assembled assembled;   ///< of the walk that is going on
  std::string outgoing;  ///< frames on their way to a socket that has room
  Cipher cipher;
  TlsProfiles tls;

 private:
  struct Deadline {
    Instant when;
    Peer* peer;
  };
  void place(std::size_t index, Deadline deadline);
  void sift_up(std::size_t index);
  void sift_down(std::size_t index);
  void remove_deadline(std::size_t index);
  void arm();
  void on_timer();

  runtime::AsioLoop& loop_;
  EngineOptions options_;
  runtime::SecureRandom random_;
  std::unique_ptr<char[]> buffer_;
  std::vector<std::shared_ptr<Peer>> peers_;  // each knows its place
  std::vector<Deadline> deadlines_;           // a heap, the earliest first; each peer knows its place
  TimerId timer_ = 0;
  Instant armed_ = Instant::max();
  bool stopped_ = false;
};

}  // namespace holdfast::ws
