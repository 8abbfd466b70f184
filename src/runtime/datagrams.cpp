#include "runtime/datagrams.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "runtime/asio_loop.hpp"

namespace holdfast::runtime {
namespace {

constexpr int datagrams_per_turn = 100;

struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// Length 0 where it is no address.
SystemAddress system_address(const SocketAddress& address) {
  SystemAddress result;
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (inet_pton(AF_INET, address.address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(address.port);
    std::memcpy(&result.storage, &four, sizeof four);
    result.length = sizeof four;
  } else if (inet_pton(AF_INET6, address.address.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(address.port);
    std::memcpy(&result.storage, &six, sizeof six);
    result.length = sizeof six;
  }
  return result;
}

int open_socket(int family) {
  return ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

}  // namespace

std::string SocketAddress::text() const {
  const bool six = address.find(':') != std::string::npos;
  return (six ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

Result<SocketAddress> parse_socket_address(std::string_view text) {
  const auto wrong = [&] {
    return fail(Code::usage, "\"" + std::string(text) +
                                 "\" is no IP address with a port: write it like 10.0.0.7:7400 or [fd00::7]:7400");
  };
  SocketAddress result;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  std::string_view address = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) return wrong();
  const bool brackets = address.starts_with('[') && address.ends_with(']');
  if (brackets) address = address.substr(1, address.size() - 2);
  result.address = address;
  const SystemAddress known = system_address(result);
  if (known.length == 0 || brackets != (known.family() == AF_INET6)) return wrong();
  return result;
}

struct Datagrams::Impl : std::enable_shared_from_this<Impl> {
  explicit Impl(AsioLoop& loop) : listening(loop.context()) {}
  ~Impl() {
    for (const int socket : {sender_4, sender_6}) {
      if (socket >= 0) ::close(socket);
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void wait() {
    listening.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [self = shared_from_this()](const boost::system::error_code& error) {
                           if (error || self->closed) return;
                           self->take();
                           if (!self->closed) self->wait();
                         });
  }
  void take() {
    std::array<char, bytes_max + 1> bytes{};
    for (int i = 0; i < datagrams_per_turn && !closed; ++i) {
      const ssize_t got = ::recv(listening.native_handle(), bytes.data(), bytes.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return;  // all taken; an error of an earlier one that was sent is nobody's business
      const auto length = static_cast<std::size_t>(got);
      const auto call = receiver;  // it may put another in its place
      if (length <= bytes_max && call) (*call)({bytes.data(), length});
    }
  }

  boost::asio::posix::stream_descriptor listening;
  std::uint16_t port = 0;
  int sender_4 = -1, sender_6 = -1;  // opened when there is something to send
  std::shared_ptr<const std::function<void(std::string_view)>> receiver;
  bool closed = false;
};

Result<std::unique_ptr<Datagrams>> Datagrams::open(AsioLoop& loop, const SocketAddress& listen) {
  const auto failed = [&] {
    const std::string why = std::strerror(errno);
    return fail(Code::usage, "cannot listen on UDP " + listen.text() + ": " + why +
                                 "; the address must be one of this machine's, the port free");
  };
  SystemAddress address = system_address(listen);
  const int socket = open_socket(address.family());
  if (socket < 0) return failed();
  auto impl = std::make_shared<Impl>(loop);
  impl->listening.assign(socket);  // which closes it
  if (::bind(socket, address.get(), address.length) != 0) return failed();
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return failed();
  impl->port =
      ntohs(address.family() == AF_INET ? reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port
                                        : reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
  impl->wait();
  return std::unique_ptr<Datagrams>(new Datagrams(std::move(impl)));
}

Datagrams::Datagrams(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Datagrams::~Datagrams() {
  impl_->closed = true;
  impl_->receiver = nullptr;
  boost::system::error_code ignored;
  impl_->listening.close(ignored);
}

std::uint16_t Datagrams::port() const {
  return impl_->port;
}

void Datagrams::receive(std::function<void(std::string_view)> receiver) {
  impl_->receiver =
      receiver ? std::make_shared<const std::function<void(std::string_view)>>(std::move(receiver)) : nullptr;
}

void Datagrams::send(const SocketAddress& to, std::string_view bytes) {
  const SystemAddress address = system_address(to);
  if (address.length == 0) return;
  int& socket = address.family() == AF_INET ? impl_->sender_4 : impl_->sender_6;
  if (socket < 0) socket = open_socket(address.family());
  if (socket < 0) return;
  (void)::sendto(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL, address.get(), address.length);
}

}  // namespace holdfast::runtime
