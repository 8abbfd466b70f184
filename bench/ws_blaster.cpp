#include "ws_blaster.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace holdfast::bench {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20U;
constexpr std::size_t bytes_per_turn = std::size_t{4} << 20U;

std::string frame_head(std::size_t size) {
  std::string head("\x81", 1);
  const auto append = [&head, size](int bytes) {
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
      head.push_back(static_cast<char>((size >> static_cast<unsigned>(shift)) & 0xffU));
    }
  };
  if (size < 126) {
    head.push_back(static_cast<char>(size));
  } else if (size < 65536) {
    head.push_back('\x7e');
    append(2);
  } else {
    head.push_back('\x7f');
    append(8);
  }
  return head;
}

std::uint64_t parameter(std::string_view target, std::string_view name) {
  const std::size_t at = target.find(std::string(name) + '=');
  std::uint64_t value = 0;
  if (at != std::string_view::npos) {
    const char* const begin = target.data() + at + name.size() + 1;
    std::from_chars(begin, target.data() + target.size(), value);
  }
  return value;
}

/// Frames of equal length, over and over; for a feed their numbers are brought up to date on each round.
class Frames {
 public:
  explicit Frames(std::string_view target)
      : left_(parameter(target, "count")), numbered_(target.starts_with("/feed")) {
    const std::string payload = numbered_ ? feed_payload() : std::string(parameter(target, "size"), 'x');
    const std::string frame = frame_head(payload.size()) + payload;
    frame_bytes_ = frame.size();
    number_at_ = frame.find(std::to_string(Blaster::first_seq));
    const std::size_t count = std::max<std::size_t>(block_bytes / frame.size(), 1);
    block_.reserve(count * frame.size());
    for (std::size_t i = 0; i < count; ++i) block_ += frame;
    refill();
  }

  [[nodiscard]] std::string_view next() const { return std::string_view(block_).substr(at_, end_ - at_); }
  void written(std::size_t bytes) {
    at_ += bytes;
    if (at_ == end_) refill();
  }

 private:
  static std::string feed_payload() {
    std::string payload = R"({"seq":)" + std::to_string(Blaster::first_seq) +
                          R"(,"symbol":"BTC-EUR","price":61234.5,"size":0.0125,"side":"buy","text":")";
    payload.resize(Blaster::feed_message_bytes - 2, '-');
    return payload + "\"}";
  }
  void refill() {
    at_ = 0;
    const std::uint64_t frames = std::min<std::uint64_t>(left_, block_.size() / frame_bytes_);
    left_ -= frames;
    end_ = frames * frame_bytes_;
    if (frames == 0 && !closing_) {
      closing_ = true;
      block_ = std::string("\x88\x02\x03\xe8", 4);
      end_ = block_.size();
      return;
    }
    if (!numbered_) return;
    for (std::uint64_t i = 0; i < frames; ++i) {
      char* const number = block_.data() + i * frame_bytes_ + number_at_;
      std::to_chars(number, number + 10, seq_++);
    }
  }

  std::string block_;
  std::size_t frame_bytes_ = 0;
  std::size_t number_at_ = 0;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t left_;
  std::int64_t seq_ = Blaster::first_seq;
  bool numbered_;
  bool closing_ = false;
};

struct Connection {
  int descriptor = -1;
  SSL* ssl = nullptr;
  bool greeted = false;
  bool finished = false;  // all was sent, the close frame too
  std::string request;
  std::unique_ptr<Frames> frames;

  ~Connection() {
    if (ssl != nullptr) SSL_free(ssl);
    // No TIME_WAIT after thousands of idle ones: the next round needs the port numbers.
    const linger reset{1, 0};
    if (!finished) ::setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ::close(descriptor);
  }
  Connection(int descriptor_, SSL* ssl_) : descriptor(descriptor_), ssl(ssl_) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Bytes, 0 at the end of the connection, -1 where there is nothing now.
  ssize_t read(char* buffer, std::size_t size) const {
    if (ssl == nullptr) {
      const ssize_t got = ::recv(descriptor, buffer, size, 0);
      return got < 0 && errno != EAGAIN && errno != EINTR ? 0 : got;
    }
    const int got = SSL_read(ssl, buffer, static_cast<int>(size));
    return got > 0 ? got : (would_block(got) ? -1 : 0);
  }
  ssize_t write(std::string_view data) const {
    if (ssl == nullptr) {
      const ssize_t put = ::send(descriptor, data.data(), data.size(), MSG_NOSIGNAL);
      return put < 0 && errno != EAGAIN && errno != EINTR ? 0 : put;
    }
    const int put = SSL_write(ssl, data.data(), static_cast<int>(std::min<std::size_t>(data.size(), 1 << 16)));
    return put > 0 ? put : (would_block(put) ? -1 : 0);
  }

 private:
  [[nodiscard]] bool would_block(int result) const {
    const int error = SSL_get_error(ssl, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }
};

std::string upgrade_answer(std::string_view request) {
  // Header names in any case: found in a copy of lower-case letters, the value taken from the request itself.
  std::string lower(request);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t name = lower.find("sec-websocket-key:");
  if (name == std::string::npos) return {};
  const std::size_t begin = request.find_first_not_of(' ', name + 18);
  const std::string key =
      std::string(request.substr(begin, request.find('\r', begin) - begin)) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  std::array<unsigned char, 32> text{};
  EVP_EncodeBlock(text.data(), digest.data(), SHA_DIGEST_LENGTH);
  return std::string("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n") +
         "Sec-WebSocket-Accept: " + reinterpret_cast<const char*>(text.data()) + "\r\n\r\n";
}

class Server {
 public:
  Server(std::vector<int> listeners, SSL_CTX* context)
      : listeners_(std::move(listeners)), context_(context), poll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (const int listener : listeners_) watch(EPOLL_CTL_ADD, listener, EPOLLIN);
  }

  [[noreturn]] void run() {
    std::array<epoll_event, 256> events{};
    while (true) {
      const int count = ::epoll_wait(poll_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        const int descriptor = event.data.fd;
        if (std::ranges::find(listeners_, descriptor) != listeners_.end()) {
          accept_all(descriptor);
        } else {
          serve(descriptor, event.events);
        }
      }
    }
  }

 private:
  void watch(int operation, int descriptor, std::uint32_t wanted) const {
    epoll_event event{};
    event.events = wanted;
    event.data.fd = descriptor;
    ::epoll_ctl(poll_, operation, descriptor, &event);
  }

  void accept_all(int listener) {
    while (true) {
      const int descriptor = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor < 0) return;
      const int on = 1;
      ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      SSL* ssl = nullptr;
      if (context_ != nullptr) {
        ssl = SSL_new(context_);
        SSL_set_fd(ssl, descriptor);
        SSL_set_accept_state(ssl);
      }
      const auto place = static_cast<std::size_t>(descriptor);
      if (connections_.size() <= place) connections_.resize(place + 1);
      connections_[place] = std::make_unique<Connection>(descriptor, ssl);
      watch(EPOLL_CTL_ADD, descriptor, EPOLLIN);
    }
  }

  void serve(int descriptor, std::uint32_t events) {
    std::unique_ptr<Connection>& connection = connections_[static_cast<std::size_t>(descriptor)];
    const bool alive = ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0 || receive(*connection)) &&
                       (connection->frames == nullptr || blast(*connection));
    if (!alive) connection.reset();
  }

  bool receive(Connection& connection) const {
    std::array<char, 16384> buffer;
    while (true) {
      const ssize_t got = connection.read(buffer.data(), buffer.size());
      if (got < 0) return true;
      if (got == 0) return false;
      if (connection.finished) return false;  // the client's close frame: the server ends the connection
      if (connection.greeted) continue;       // what it says before does not matter here
      connection.request.append(buffer.data(), static_cast<std::size_t>(got));
      if (connection.request.find("\r\n\r\n") != std::string::npos && !greet(connection)) return false;
    }
  }

  bool greet(Connection& connection) const {
    const std::string answer = upgrade_answer(connection.request);
    if (answer.empty() || connection.write(answer) != static_cast<ssize_t>(answer.size())) return false;
    connection.greeted = true;
    const std::string_view line = std::string_view(connection.request).substr(4);  // after "GET "
    const std::string_view target = line.substr(0, line.find(' '));
    if (!target.starts_with("/idle")) {
      connection.frames = std::make_unique<Frames>(target);
      watch(EPOLL_CTL_MOD, connection.descriptor, EPOLLIN | EPOLLOUT);
    }
    std::string().swap(connection.request);
    return true;
  }

  bool blast(Connection& connection) const {
    for (std::size_t sent = 0; sent < bytes_per_turn;) {
      const ssize_t put = connection.write(connection.frames->next());
      if (put < 0) return true;
      if (put == 0) return false;
      connection.frames->written(static_cast<std::size_t>(put));
      sent += static_cast<std::size_t>(put);
      if (!connection.frames->next().empty()) continue;
      connection.frames.reset();
      connection.finished = true;
      watch(EPOLL_CTL_MOD, connection.descriptor, EPOLLIN);
      return true;
    }
    return true;
  }

  std::vector<int> listeners_;
  SSL_CTX* context_;
  int poll_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by descriptor
};

int listen_somewhere(std::uint16_t& port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (descriptor < 0 || ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(descriptor, 4096) != 0 ||
      ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error(std::string("cannot listen: ") + std::strerror(errno));
  }
  port = ntohs(address.sin_port);
  return descriptor;
}

SSL_CTX* make_context(const std::string& certificate_file, const std::string& key_file) {
  if (certificate_file.empty()) return nullptr;
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    throw std::runtime_error("cannot read the certificate " + certificate_file);
  }
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  return context;
}

}  // namespace

Blaster::Blaster(const std::string& certificate_file, const std::string& key_file) : tls_(!certificate_file.empty()) {
  SSL_CTX* const context = make_context(certificate_file, key_file);
  std::vector<int> sockets;
  for (std::size_t i = 0; i < listeners; ++i) sockets.push_back(listen_somewhere(ports_.emplace_back()));
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::signal(SIGPIPE, SIG_IGN);
    Server(std::move(sockets), context).run();
  }
  for (const int socket : sockets) ::close(socket);
  if (context != nullptr) SSL_CTX_free(context);
}

Blaster::~Blaster() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string Blaster::url(const std::string& target, std::size_t listener) const {
  return (tls_ ? "wss://127.0.0.1:" : "ws://127.0.0.1:") + std::to_string(ports_[listener % listeners]) + target;
}

}  // namespace holdfast::bench
