#include "runtime/datagrams.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/asio_loop.hpp"

namespace holdfast::runtime {
namespace {

constexpr int datagrams_per_turn = 100;

int open_socket(int family) {
  return ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

}  // namespace

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
  const SystemAddress address = listen.system();
  const int socket = open_socket(address.family());
  if (socket < 0) return failed();
  auto impl = std::make_shared<Impl>(loop);
  impl->listening.assign(socket);  // which closes it
  if (::bind(socket, address.get(), address.length) != 0) return failed();
  impl->port = bound_port(socket);
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
  const SystemAddress address = to.system();
  if (address.length == 0) return;
  int& socket = address.family() == AF_INET ? impl_->sender_4 : impl_->sender_6;
  if (socket < 0) socket = open_socket(address.family());
  if (socket < 0) return;
  (void)::sendto(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL, address.get(), address.length);
}

}  // namespace holdfast::runtime
