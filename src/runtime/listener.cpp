#include "runtime/listener.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace holdfast::runtime {
namespace {

constexpr int backlog = 4096;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] int take() { return std::exchange(number_, -1); }

 private:
  int number_;
};

int open_socket(int family) {
  return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

tl::unexpected<Error> failed(const ListenAddress& address, int error) {
  const std::string where = "cannot listen on " + address.text() + ": ";
  if (error == EADDRINUSE) {
    return fail(Code::unavailable, where + (address.is_unix() ? "another process does: end it, or choose another file"
                                                              : "the port is in use: choose another, or 0 for one "
                                                                "that is free"));
  }
  if (error == EACCES || error == EPERM) {
    return fail(Code::denied, where + (address.is_unix() ? "this user may not write to its folder"
                                                         : "choose a port from 1024 on, or 0 for one that is free"));
  }
  if (error == ENOTSOCK)
    return fail(Code::usage, where + "that file is no socket: choose another path, or move it away");
  if (error == ENOENT) return fail(Code::not_found, where + "there is no such folder");
  return fail(Code::unavailable, where + std::strerror(error) + ": choose an address of this machine");
}

/// Whether somebody accepts connections there.
bool is_listened_on(const sockaddr_un& name) {
  const Descriptor probe(open_socket(AF_UNIX));
  if (probe.get() < 0) return true;
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return true;
  return errno != ECONNREFUSED && errno != ENOENT;
}

/// Takes away what a process left behind that is gone. An errno, or 0.
int remove_stale(const sockaddr_un& name) {
  struct stat found {};
  if (::lstat(name.sun_path, &found) != 0) return errno == ENOENT ? 0 : errno;
  if (!S_ISSOCK(found.st_mode)) return ENOTSOCK;
  if (is_listened_on(name)) return EADDRINUSE;
  return ::unlink(name.sun_path) == 0 ? 0 : errno;
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  constexpr std::string_view prefix = "unix:";
  ListenAddress result;
  if (text.starts_with(prefix)) {
    result.path = text.substr(prefix.size());
    if (result.path.empty()) return fail(Code::usage, "unix: needs the path of a file: unix:/run/holdfast.sock");
    if (result.path.size() >= sizeof(sockaddr_un::sun_path) || result.path.find('\0') != std::string::npos) {
      return fail(Code::usage, "the path of a Unix socket has at most " +
                                   std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
    }
    return result;
  }
  const auto tcp = parse_socket_address(text);
  if (!tcp) {
    return fail(Code::usage, "\"" + std::string(text) +
                                 "\" is no place to listen: write it like 127.0.0.1:7420, [::1]:7420 or "
                                 "unix:/run/holdfast.sock");
  }
  result.tcp = *tcp;
  return result;
}

Listener::Listener(Listener&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      address_(std::move(other.address_)),
      file_(std::exchange(other.file_, std::nullopt)) {}

int Listener::family() const {
  return address_.is_unix() ? AF_UNIX : address_.tcp.system().family();
}

Result<Listener> Listener::open(const ListenAddress& address) {
  return address.is_unix() ? open_unix(address) : open_tcp(address);
}

Result<Listener> Listener::open_tcp(const ListenAddress& address) {
  const SystemAddress where = address.tcp.system();
  Descriptor socket(open_socket(where.family()));
  if (socket.get() < 0) return failed(address, errno);
  const int yes = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), where.get(), where.length) != 0) return failed(address, errno);
  if (::listen(socket.get(), backlog) != 0) return failed(address, errno);
  ListenAddress bound = address;
  bound.tcp.port = bound_port(socket.get());
  return Listener(socket.take(), std::move(bound));
}

Result<Listener> Listener::open_unix(const ListenAddress& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.data(), address.path.size());
  // Two that start at once must not take each other's file for one that was left behind: the folder is locked.
  std::filesystem::path folder = std::filesystem::path(address.path).parent_path();
  if (folder.empty()) folder = ".";
  const Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0) return failed(address, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Code::unavailable, "cannot listen on " + address.text() +
                                       ": another process has locked its folder; it may be starting there");
  }
  if (const int error = remove_stale(name); error != 0) return failed(address, error);
  Descriptor socket(open_socket(AF_UNIX));
  if (socket.get() < 0) return failed(address, errno);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) return failed(address, errno);
  Listener listener(socket.take(), address);
  // Before anybody can connect.
  if (::chmod(name.sun_path, S_IRUSR | S_IWUSR) != 0) return failed(address, errno);
  if (::listen(listener.descriptor_, backlog) != 0) return failed(address, errno);
  struct stat made {};
  if (::lstat(name.sun_path, &made) != 0) return failed(address, errno);
  listener.file_ = File{made.st_dev, made.st_ino, made.st_ctim};
  return listener;
}

void Listener::close() {
  if (const auto file = std::exchange(file_, std::nullopt)) {
    struct stat found {};
    const bool is_ours = ::lstat(address_.path.c_str(), &found) == 0 && found.st_dev == file->device &&
                         found.st_ino == file->inode && found.st_ctim.tv_sec == file->changed.tv_sec &&
                         found.st_ctim.tv_nsec == file->changed.tv_nsec;
    if (is_ours) (void)::unlink(address_.path.c_str());
  }
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace holdfast::runtime
