#include "runtime/http_sockets.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <utility>

#include "holdfast/assert.hpp"

namespace holdfast::runtime {

HttpSockets::HttpSockets(AsioLoop& loop, std::function<void()> progressed)
    : loop_(loop), progressed_(std::move(progressed)), multi_(curl().multi_init()) {
  if (multi_ == nullptr) throw std::runtime_error("libcurl has no multi handle to give: out of memory");
  curl().multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &on_interest);
  curl().multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl().multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &on_timeout);
  curl().multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
}

HttpSockets::~HttpSockets() {
  *alive_ = false;
  if (timer_ != 0) loop_.cancel(timer_);
  timer_ = 0;
  curl().multi_cleanup(multi_);  // closes idle connections, through on_close
}

void HttpSockets::attach(CURL* easy) {
  curl().easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &on_open);
  curl().easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
  curl().easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, &on_close);
  curl().easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, this);
}

curl_socket_t HttpSockets::on_open(void* self, curlsocktype /*purpose*/, curl_sockaddr* address) {
  const int descriptor =
      ::socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->protocol);
  if (descriptor < 0) return CURL_SOCKET_BAD;
  try {
    static_cast<HttpSockets*>(self)->add(descriptor, true);
  } catch (const std::exception&) {  // the system is out of watches or memory; nothing may be thrown through libcurl
    ::close(descriptor);
    return CURL_SOCKET_BAD;
  }
  return descriptor;
}

int HttpSockets::on_close(void* self, curl_socket_t descriptor) {
  static_cast<HttpSockets*>(self)->forget(descriptor);
  return ::close(descriptor);
}

int HttpSockets::on_interest(CURL* /*easy*/, curl_socket_t descriptor, int what, void* self, void* /*known*/) try {
  auto& sockets = *static_cast<HttpSockets*>(self);
  const auto found = sockets.sockets_.find(descriptor);
  if (what == CURL_POLL_REMOVE) {
    if (found == sockets.sockets_.end()) return 0;
    // A wait that is under way is left there: most connections are wanted again soon.
    found->second->wants = 0;
    if (!found->second->kept) sockets.forget(descriptor);
    return 0;
  }
  const std::shared_ptr<Socket> socket =
      found != sockets.sockets_.end() ? found->second : sockets.add(descriptor, false);
  socket->wants = what;
  sockets.watch(socket);
  return 0;
} catch (const std::exception&) {
  return 0;  // not watched: the request that waits for it ends by its deadline
}

std::shared_ptr<HttpSockets::Socket> HttpSockets::add(curl_socket_t descriptor, bool kept) {
  forget(descriptor);  // a number that was closed behind our back
  auto socket = std::make_shared<Socket>(loop_.context(), descriptor, kept);
  sockets_.emplace(descriptor, socket);
  return socket;
}

void HttpSockets::forget(curl_socket_t descriptor) {
  const auto found = sockets_.find(descriptor);
  if (found == sockets_.end()) return;
  found->second->wants = 0;
  found->second->descriptor.release();  // the descriptor itself is libcurl's to close
  sockets_.erase(found);
}

void HttpSockets::watch(const std::shared_ptr<Socket>& socket) {
  if ((socket->wants & CURL_POLL_IN) != 0 && !socket->waits_to_read) wait(socket, true);
  if ((socket->wants & CURL_POLL_OUT) != 0 && !socket->waits_to_write) wait(socket, false);
}

void HttpSockets::wait(const std::shared_ptr<Socket>& socket, bool to_read) {
  using Descriptor = boost::asio::posix::stream_descriptor;
  (to_read ? socket->waits_to_read : socket->waits_to_write) = true;
  socket->descriptor.async_wait(to_read ? Descriptor::wait_read : Descriptor::wait_write,
                                [this, alive = alive_, socket, to_read](const boost::system::error_code& error) {
                                  (to_read ? socket->waits_to_read : socket->waits_to_write) = false;
                                  if (error || !*alive) return;  // closed meanwhile
                                  ready(socket, to_read);
                                });
}

void HttpSockets::ready(const std::shared_ptr<Socket>& socket, bool to_read) {
  const int wanted = to_read ? CURL_POLL_IN : CURL_POLL_OUT;
  // Nobody is interested (an idle connection that the server closed): not waited for again, or it would be a busy
  // loop.
  if (!socket->descriptor.is_open() || (socket->wants & wanted) == 0) return;
  const std::shared_ptr<bool> alive = alive_;
  const curl_socket_t descriptor = socket->descriptor.native_handle();
  act(descriptor, to_read ? CURL_CSELECT_IN : CURL_CSELECT_OUT);
  if (*alive && socket->descriptor.is_open()) watch(socket);
}

int HttpSockets::on_timeout(CURLM* /*multi*/, long timeout_ms, void* self) {
  auto& sockets = *static_cast<HttpSockets*>(self);
  if (!*sockets.alive_) return 0;
  if (timeout_ms == 0) {
    sockets.due_ = Instant::max();
    sockets.run_soon();
  } else if (timeout_ms < 0) {
    sockets.due_ = Instant::max();
  } else {
    sockets.due_ = sockets.loop_.instant() + std::chrono::milliseconds(timeout_ms);
    sockets.arm();
  }
  return 0;
}

void HttpSockets::run_soon() {
  if (run_is_posted_) return;
  run_is_posted_ = true;
  loop_.post([this, alive = alive_] {
    if (!*alive) return;
    run_is_posted_ = false;
    act(CURL_SOCKET_TIMEOUT, 0);
  });
}

// A timer that fires too early looks again: cheaper than moving it with every request.
void HttpSockets::arm() {
  if (due_ >= armed_) return;
  if (timer_ != 0) loop_.cancel(timer_);
  armed_ = due_;
  timer_ = loop_.call_at(due_, [this] { on_timer(); });
}

void HttpSockets::on_timer() {
  timer_ = 0;
  armed_ = Instant::max();
  if (due_ > loop_.instant()) return arm();
  due_ = Instant::max();
  act(CURL_SOCKET_TIMEOUT, 0);
}

void HttpSockets::act(curl_socket_t descriptor, int events) {
  int running = 0;
  const CURLMcode code = curl().multi_socket_action(multi_, descriptor, events, &running);
  HOLDFAST_ASSERT(code == CURLM_OK || code == CURLM_BAD_SOCKET, "libcurl is called as it asks to be");
  progressed_();
}

}  // namespace holdfast::runtime
