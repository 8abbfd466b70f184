#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ws/tls.hpp"

namespace holdfast::ws {

/// What one attempt to read or write without waiting came to.
struct Transfer {
  enum class Kind : std::uint8_t {
    some,        ///< `bytes` of them, at least one
    want_read,   ///< not before the socket is readable
    want_write,  ///< not before it is writable (for a read: TLS has something to say first)
    ended,       ///< the peer has closed its side
    failed,      ///< Socket::trouble() says how
  };
  Kind kind = Kind::want_read;
  std::size_t bytes = 0;
};

/// TLS records as they came, of whatever connection is being read: shared by all of an engine. A connection
/// takes all of it before its turn ends, or keeps the rest in its Socket.
struct Cipher {
  std::unique_ptr<char[]> buffer;
  std::string_view left;
  const void* owner = nullptr;  ///< the Socket whose turn it is
};

/// A non-blocking stream socket, plain or TLS, that waits by Asio readiness. Never raises SIGPIPE.
class Socket {
 public:
  using Descriptor = boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

  Socket(boost::asio::io_context& context, Cipher& cipher) : descriptor_(context), cipher_(&cipher) {}
  /// Only before start_tls(): afterwards OpenSSL knows its address.
  Socket(Socket&& other) noexcept = default;
  Socket& operator=(Socket&& other) noexcept = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() = default;

  /// Takes the descriptor over.
  void adopt(int descriptor) { descriptor_.assign(descriptor); }
  [[nodiscard]] bool is_open() const { return descriptor_.is_open(); }
  [[nodiscard]] int handle() { return descriptor_.native_handle(); }
  void close();

  void start_tls(SslPointer ssl);
  /// want_*, failed, or `some` once it is done.
  Transfer handshake();
  [[nodiscard]] bool secure() const { return ssl_ != nullptr; }

  /// `receive`: whether the system may be asked for more. Without, only what was received before and is still
  /// to be decrypted is handed out.
  Transfer read(char* to, std::size_t size, bool receive);
  Transfer write(std::string_view from);
  /// Bytes as they come, not decrypted: to be thrown away.
  Transfer read_raw(char* to, std::size_t size);
  /// Ends our side: close_notify and FIN.
  void finish_writing();
  /// To be called when the connection's turn to read is over.
  void end_turn();
  /// The last failure in words: "reset by the peer".
  [[nodiscard]] std::string trouble() const;

  template <class Handler>
  void wait_readable(Handler handler) {
    descriptor_.async_wait(Descriptor::wait_read, std::move(handler));
  }
  template <class Handler>
  void wait_writable(Handler handler) {
    descriptor_.async_wait(Descriptor::wait_write, std::move(handler));
  }

 private:
  friend struct SocketBio;
  Transfer receive(char* to, std::size_t size);
  Transfer after_tls(int result);
  void release_buffers();

  Descriptor descriptor_;
  Cipher* cipher_;
  SslPointer ssl_;
  std::unique_ptr<std::string> kept_;  // what end_turn() had to keep of the shared buffer
  int error_ = 0;                      // errno of the last failure; 0: TLS, or none
  bool may_receive_ = true;
  bool drained_ = false;  // the last recv() gave less than it was asked for
  std::unique_ptr<std::string> tls_trouble_;
};

}  // namespace holdfast::ws
