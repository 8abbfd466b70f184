#include "ws/socket.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

namespace holdfast::ws {
namespace {

constexpr std::size_t cipher_bytes = std::size_t{64} << 10U;

}  // namespace

/// OpenSSL's view of a Socket. Its own socket BIO writes with write(), which raises SIGPIPE, and reads each
/// record with two calls; this one takes records out of the shared buffer.
struct SocketBio {
  static int read(BIO* bio, char* to, int size) {
    auto* socket = static_cast<Socket*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (size <= 0) return 0;
    const auto wanted = static_cast<std::size_t>(size);
    if (socket->kept_) return take_kept(*socket, to, wanted);
    Cipher& cipher = *socket->cipher_;
    if (cipher.left.empty() || cipher.owner != socket) {
      if (!socket->may_receive_ || socket->drained_ || !cipher.left.empty()) {
        BIO_set_retry_read(bio);
        return -1;
      }
      if (!cipher.buffer) cipher.buffer = std::make_unique<char[]>(cipher_bytes);
      const Transfer got = socket->receive(cipher.buffer.get(), cipher_bytes);
      if (got.kind == Transfer::Kind::want_read) BIO_set_retry_read(bio);
      if (got.kind != Transfer::Kind::some) return got.kind == Transfer::Kind::ended ? 0 : -1;
      cipher.left = {cipher.buffer.get(), got.bytes};
      cipher.owner = socket;
    }
    const std::size_t taken = std::min(wanted, cipher.left.size());
    std::memcpy(to, cipher.left.data(), taken);
    cipher.left.remove_prefix(taken);
    return static_cast<int>(taken);
  }

  static int take_kept(Socket& socket, char* to, std::size_t wanted) {
    std::string& kept = *socket.kept_;
    const std::size_t taken = std::min(wanted, kept.size());
    kept.copy(to, taken);
    kept.erase(0, taken);
    if (kept.empty()) socket.kept_.reset();
    return static_cast<int>(taken);
  }

  static int write(BIO* bio, const char* from, int size) {
    auto* socket = static_cast<Socket*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const ssize_t sent = ::send(socket->handle(), from, static_cast<std::size_t>(std::max(size, 0)), MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<int>(sent);
    if (errno == EAGAIN || errno == EINTR) {
      BIO_set_retry_write(bio);
    } else {
      socket->error_ = errno;
    }
    return -1;
  }

  static long control(BIO* bio, int command, long, void*) {
    auto* socket = static_cast<Socket*>(BIO_get_data(bio));
    switch (command) {
      case BIO_CTRL_FLUSH:
      case BIO_CTRL_DUP:
        return 1;
      case BIO_CTRL_EOF:
        return socket != nullptr && !socket->is_open() ? 1 : 0;
      default:
        return 0;
    }
  }

  static BIO_METHOD* method() {
    // Made once, on first use, for the life of the process.
    static BIO_METHOD* const made = [] {
      BIO_METHOD* fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holdfast socket");
      if (fresh == nullptr) throw std::bad_alloc();
      BIO_meth_set_read(fresh, &SocketBio::read);
      BIO_meth_set_write(fresh, &SocketBio::write);
      BIO_meth_set_ctrl(fresh, &SocketBio::control);
      return fresh;
    }();
    return made;
  }
};

void Socket::close() {
  ssl_.reset();
  kept_.reset();
  if (cipher_->owner == this) cipher_->left = {};
  if (!descriptor_.is_open()) return;
  boost::system::error_code ignored;
  descriptor_.close(ignored);
}

void Socket::start_tls(SslPointer ssl) {
  ssl_ = std::move(ssl);
  BIO* bio = BIO_new(SocketBio::method());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);  // takes it over
}

Transfer Socket::handshake() {
  may_receive_ = true;
  drained_ = false;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    SSL_set_app_data(ssl_.get(), nullptr);  // the report of the verification goes away
    return {Transfer::Kind::some, 0};
  }
  return after_tls(result);
}

Transfer Socket::receive(char* to, std::size_t size) {
  ssize_t got = 0;
  do {
    got = ::recv(handle(), to, size, 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    drained_ = static_cast<std::size_t>(got) < size;
    return {Transfer::Kind::some, static_cast<std::size_t>(got)};
  }
  if (got == 0) return {Transfer::Kind::ended, 0};
  if (errno == EAGAIN) {
    drained_ = true;
    return {Transfer::Kind::want_read, 0};
  }
  error_ = errno;
  return {Transfer::Kind::failed, 0};
}

Transfer Socket::after_tls(int result) {
  const int saved = error_;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {Transfer::Kind::want_read, 0};
    case SSL_ERROR_WANT_WRITE:
      return {Transfer::Kind::want_write, 0};
    case SSL_ERROR_ZERO_RETURN:
      return {Transfer::Kind::ended, 0};
    case SSL_ERROR_SYSCALL:
      if (saved != 0) return {Transfer::Kind::failed, 0};
      return {Transfer::Kind::ended, 0};
    default:
      break;
  }
  const unsigned long error = ERR_peek_error();
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    ERR_clear_error();
    return {Transfer::Kind::ended, 0};
  }
  if (saved == 0 && !tls_trouble_) tls_trouble_ = std::make_unique<std::string>("TLS: " + take_tls_error());
  ERR_clear_error();
  return {Transfer::Kind::failed, 0};
}

Transfer Socket::read(char* to, std::size_t size, bool receive_more) {
  if (!ssl_) {
    if (!receive_more || drained_) return {Transfer::Kind::want_read, 0};
    return receive(to, size);
  }
  may_receive_ = receive_more;
  ERR_clear_error();
  // Many small records make one walk over their frames.
  std::size_t got = 0;
  Transfer last;
  while (size - got >= SSL3_RT_MAX_PLAIN_LENGTH || got == 0) {
    const int result = SSL_read(ssl_.get(), to + got, static_cast<int>(std::min(size - got, std::size_t{1} << 20U)));
    if (result <= 0) {
      last = after_tls(result);
      break;
    }
    got += static_cast<std::size_t>(result);
  }
  // What ended the loop is met again by the next call.
  return got > 0 ? Transfer{Transfer::Kind::some, got} : last;
}

Transfer Socket::read_raw(char* to, std::size_t size) {
  kept_.reset();
  return receive(to, size);
}

Transfer Socket::write(std::string_view from) {
  if (!ssl_) {
    ssize_t sent = 0;
    do {
      sent = ::send(handle(), from.data(), from.size(), MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return {Transfer::Kind::some, static_cast<std::size_t>(sent)};
    if (errno == EAGAIN) return {Transfer::Kind::want_write, 0};
    error_ = errno;
    return {Transfer::Kind::failed, 0};
  }
  ERR_clear_error();
  const int result =
      SSL_write(ssl_.get(), from.data(), static_cast<int>(std::min(from.size(), std::size_t{1} << 30U)));
  if (result > 0) return {Transfer::Kind::some, static_cast<std::size_t>(result)};
  return after_tls(result);
}

void Socket::finish_writing() {
  if (ssl_ && SSL_is_init_finished(ssl_.get()) == 1) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  ::shutdown(handle(), SHUT_WR);
}

void Socket::release_buffers() {
  // A TLS 1.3 session ticket makes OpenSSL take a write buffer of 16 KiB that it would keep until the next write.
  // Not inside a record: OpenSSL before 3.0.14 would free the header that it has already read (CVE-2024-4741).
  if (std::string_view(SSL_rstate_string(ssl_.get())) == "RH") SSL_free_buffers(ssl_.get());
}

void Socket::end_turn() {
  drained_ = false;
  if (!ssl_) return;
  release_buffers();
  if (cipher_->left.empty() || cipher_->owner != this) return;
  if (!kept_) kept_ = std::make_unique<std::string>();
  kept_->append(cipher_->left);
  cipher_->left = {};
}

std::string Socket::trouble() const {
  if (tls_trouble_) return *tls_trouble_;
  switch (error_) {
    case 0:
      return "the connection failed";
    case ECONNRESET:
    case EPIPE:
      return "the connection was reset by the other side";
    case ETIMEDOUT:
      return "the connection timed out";
    default:
      return "the connection failed: " + std::generic_category().message(error_);
  }
}

}  // namespace holdfast::ws
