#pragma once
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <unordered_map>

#include "runtime/asio_loop.hpp"
#include "runtime/curl.hpp"

namespace holdfast::runtime {

/// A libcurl multi handle whose sockets and timer are the loop's. A part of HttpClient.
///
/// A connection stays registered with the loop while it is idle, so that a request on a kept connection costs no
/// change of registration; it is taken out just before libcurl closes it.
class HttpSockets {
 public:
  /// `progressed` is called on the loop, never inside a call of libcurl's, after transfers may have ended. It may
  /// destroy this object.
  HttpSockets(AsioLoop& loop, std::function<void()> progressed);
  ~HttpSockets();  ///< every easy handle has been removed
  HttpSockets(const HttpSockets&) = delete;
  HttpSockets& operator=(const HttpSockets&) = delete;

  [[nodiscard]] CURLM* multi() const { return multi_; }
  /// Settings of an easy handle that make its connections known here. They hold until the handle is reset.
  void attach(CURL* easy);

 private:
  struct Socket {
    Socket(boost::asio::io_context& context, curl_socket_t descriptor_, bool kept_)
        : descriptor(context, descriptor_), kept(kept_) {}
    boost::asio::posix::stream_descriptor descriptor;
    bool kept;      ///< ours from its opening to its closing; else (the resolver's wake-up) only while it is watched
    int wants = 0;  ///< CURL_POLL_*
    bool waits_to_read = false, waits_to_write = false;
  };

  static int on_interest(CURL* easy, curl_socket_t descriptor, int what, void* self, void* known);
  static int on_timeout(CURLM* multi, long timeout_ms, void* self);
  static curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int on_close(void* self, curl_socket_t descriptor);

  std::shared_ptr<Socket> add(curl_socket_t descriptor, bool kept);
  void forget(curl_socket_t descriptor);
  void watch(const std::shared_ptr<Socket>& socket);
  void wait(const std::shared_ptr<Socket>& socket, bool to_read);
  void ready(const std::shared_ptr<Socket>& socket, bool to_read);
  void run_soon();
  void arm();
  void on_timer();
  void act(curl_socket_t descriptor, int events);

  AsioLoop& loop_;
  std::function<void()> progressed_;
  CURLM* multi_ = nullptr;
  std::unordered_map<curl_socket_t, std::shared_ptr<Socket>> sockets_;  // looked up only, never walked
  Instant due_ = Instant::max();                                        // when libcurl wants to be called
  Instant armed_ = Instant::max();
  TimerId timer_ = 0;
  bool run_is_posted_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what was posted and runs after the destructor
};

}  // namespace holdfast::runtime
