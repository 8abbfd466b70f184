#pragma once
#include <sys/types.h>
#include <time.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "holdfast/error.hpp"
#include "runtime/socket_address.hpp"

namespace holdfast::runtime {

/// Where a server listens: `127.0.0.1:7420`, `[::1]:7420`, or the file of a Unix socket: `unix:/run/holdfast.sock`.
struct ListenAddress {
  SocketAddress tcp;  ///< unless there is a path
  std::string path;
  [[nodiscard]] bool is_unix() const { return !path.empty(); }
  /// Only this machine reaches it.
  [[nodiscard]] bool is_local() const { return is_unix() || tcp.is_loopback(); }
  [[nodiscard]] std::string text() const { return is_unix() ? "unix:" + path : tcp.text(); }
};
/// Code::usage says what is wrong. Port 0 takes a free one.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

/// A stream socket that listens. That of a file may be used by its owner only (0600); a file that a process left
/// behind which is gone is replaced, one that somebody listens on is not. The file goes with the socket.
class Listener {
 public:
  [[nodiscard]] static Result<Listener> open(const ListenAddress& address);
  ~Listener() { close(); }
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;

  [[nodiscard]] const ListenAddress& address() const { return address_; }  ///< with the port in use
  [[nodiscard]] int family() const;
  /// The socket, to be closed by who takes it.
  [[nodiscard]] int take_descriptor() { return std::exchange(descriptor_, -1); }
  /// The file, then the socket, if it was not taken. While somebody listens nobody else takes the file's name, so who
  /// took the socket closes it after this.
  void close();

 private:
  struct File {
    dev_t device = 0;
    ino_t inode = 0;  // used again at once by some file systems: so the time counts too
    timespec changed{};
  };
  Listener(int descriptor, ListenAddress address) : descriptor_(descriptor), address_(std::move(address)) {}
  [[nodiscard]] static Result<Listener> open_tcp(const ListenAddress& address);
  [[nodiscard]] static Result<Listener> open_unix(const ListenAddress& address);

  int descriptor_ = -1;
  ListenAddress address_;
  std::optional<File> file_;  // ours, as long as it is this one
};

}  // namespace holdfast::runtime
