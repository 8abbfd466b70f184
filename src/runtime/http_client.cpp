#include "runtime/http_client.hpp"

#include <map>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/asio_loop.hpp"
#include "runtime/environment.hpp"
#include "runtime/http_easy.hpp"
#include "runtime/http_sockets.hpp"
#include "runtime/sigv4.hpp"

namespace holdfast::runtime {

HttpLimits http_limits_for_aws() {
  HttpLimits limits;
  limits.ca_file = environment("AWS_CA_BUNDLE").value_or("");
  return limits;
}

/// Requests from send() to their handlers. A request waits for its turn (`waiting` of its host), or has an easy
/// handle, or is failed and waits for the loop to say so.
class HttpClient::Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(AsioLoop& loop, HttpLimits limits) : loop_(loop), limits_(std::move(limits)) {}
  void open();
  void close();

  RequestId send(HttpRequest request, Instant deadline, Handler handler);
  void cancel(RequestId id);
  [[nodiscard]] HttpCounts counts() const { return counts_; }

 private:
  struct Waiting {
    std::string origin;
    HttpRequest request;
  };
  struct Pending {
    Handler handler;
    TimerId deadline = 0;
    std::unique_ptr<HttpEasy> easy;           // where it is on its way
    std::optional<Waiting> waiting;           // where it waits for its turn
    std::optional<HttpFailure> failure = {};  // where it has failed
  };
  struct Host {
    std::size_t active = 0;
    std::map<RequestId, Pending*> waiting;  // ids rise: first come, first served
  };

  void start(RequestId id, Pending& pending, std::string origin, HttpRequest request);
  void fail_soon(RequestId id, Pending& pending, std::string detail);
  void on_deadline(RequestId id);
  void collect();
  void respond(RequestId id, HttpReply reply);
  void let_go(RequestId id, Pending& pending);
  void next_of(const std::string& origin);

  AsioLoop& loop_;
  const HttpLimits limits_;
  HttpCounts counts_;
  SigV4 signer_;
  std::optional<HttpSockets> sockets_;  // nothing once closed
  CURLSH* share_ = nullptr;             // TLS sessions, so that a new connection can resume one
  std::unordered_map<RequestId, Pending> pending_;
  std::map<std::string, Host> hosts_;
  std::size_t waiting_ = 0;
  std::vector<std::unique_ptr<HttpEasy>> idle_;
  RequestId last_id_ = 0;
};

void HttpClient::Engine::open() {
  // Thread-safe since 7.84, and counted: it does its work once per process.
  if (curl().global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw std::runtime_error("libcurl cannot be initialized");
  sockets_.emplace(loop_, [this] { collect(); });
  curl().multi_setopt(sockets_->multi(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  // Its own limit would count busy connections too: all of them are kept.
  curl().multi_setopt(sockets_->multi(), CURLMOPT_MAXCONNECTS, static_cast<long>(4 * limits_.connections_per_host));
  share_ = curl().share_init();
  if (share_ != nullptr) curl().share_setopt(share_, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

void HttpClient::Engine::close() {
  for (auto& [id, pending] : pending_) {  // nondeterminism-ok: nothing is called back, the order shows nowhere
    if (pending.deadline != 0) loop_.cancel(pending.deadline);
    if (pending.easy) curl().multi_remove_handle(sockets_->multi(), pending.easy->handle());
  }
  pending_.clear();
  hosts_.clear();
  idle_.clear();
  sockets_.reset();  // after the easy handles
  if (share_ != nullptr) curl().share_cleanup(share_);
  share_ = nullptr;
  curl().global_cleanup();
}

HttpTransport::RequestId HttpClient::Engine::send(HttpRequest request, Instant deadline, Handler handler) {
  const RequestId id = ++last_id_;
  Pending& pending = pending_[id];
  pending.handler = std::move(handler);
  std::string origin = http_origin(request.url);
  if (deadline <= loop_.instant()) {
    fail_soon(id, pending, origin + ": its time was over before it began");
    return id;
  }
  pending.deadline = loop_.call_at(deadline, [this, id] { on_deadline(id); });
  Host& host = hosts_[origin];
  if (host.active < limits_.connections_per_host) {
    ++host.active;
    start(id, pending, std::move(origin), std::move(request));
  } else if (waiting_ < limits_.waiting_max) {
    ++waiting_;
    host.waiting.emplace(id, &pending);
    pending.waiting.emplace(Waiting{std::move(origin), std::move(request)});
  } else {
    fail_soon(id, pending, origin + ": too many requests are waiting (" + std::to_string(waiting_) + ")");
  }
  return id;
}

void HttpClient::Engine::start(RequestId id, Pending& pending, std::string origin, HttpRequest request) {
  if (idle_.empty()) {
    pending.easy = std::make_unique<HttpEasy>(limits_, *sockets_);
    curl().easy_setopt(pending.easy->handle(), CURLOPT_SHARE, share_);
  } else {
    pending.easy = std::move(idle_.back());
    idle_.pop_back();
  }
  HttpEasy& easy = *pending.easy;
  easy.origin = std::move(origin);
  // Now, and not when it began to wait: a signature is good for some minutes only.
  if (request.signing) signer_.sign(request, loop_.wall());
  easy.begin(id, std::move(request));
  curl().multi_add_handle(sockets_->multi(), easy.handle());  // asks for a call soon, through the timer
}

void HttpClient::Engine::fail_soon(RequestId id, Pending& pending, std::string detail) {
  pending.failure.emplace(HttpFailure{HttpStage::not_sent, std::move(detail)});
  loop_.post([weak = weak_from_this(), id] {
    const auto engine = weak.lock();
    if (!engine) return;
    const auto found = engine->pending_.find(id);
    if (found == engine->pending_.end() || !found->second.failure) return;  // cancelled
    engine->respond(id, tl::unexpected(std::move(*found->second.failure)));
  });
}

void HttpClient::Engine::on_deadline(RequestId id) {
  Pending& pending = pending_.at(id);
  pending.deadline = 0;
  if (pending.failure) return;
  HttpFailure failure;
  if (pending.waiting) {
    failure = {HttpStage::not_sent, pending.waiting->origin + ": no connection was free in time"};
  } else {
    failure.stage = pending.easy->stage();
    failure.detail =
        pending.easy->origin + (failure.stage == HttpStage::sent ? ": no answer in time" : ": no connection in time");
  }
  respond(id, tl::unexpected(std::move(failure)));
}

void HttpClient::Engine::cancel(RequestId id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  let_go(id, found->second);
  pending_.erase(found);
}

void HttpClient::Engine::collect() {
  const auto self = shared_from_this();  // a handler may destroy the client
  int left = 0;
  while (sockets_) {
    CURLMsg* const message = curl().multi_info_read(sockets_->multi(), &left);
    if (message == nullptr) return;
    if (message->msg != CURLMSG_DONE) continue;
    HttpEasy* easy = nullptr;
    curl().easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &easy);
    respond(easy->id, easy->end(message->data.result));
  }
}

void HttpClient::Engine::respond(RequestId id, HttpReply reply) {
  const auto self = shared_from_this();
  const auto found = pending_.find(id);
  const Handler handler = std::move(found->second.handler);
  let_go(id, found->second);
  pending_.erase(found);
  handler(std::move(reply));
}

/// Takes a request out of wherever it is, and lets the next one of its host have its place.
void HttpClient::Engine::let_go(RequestId id, Pending& pending) {
  if (pending.deadline != 0) loop_.cancel(pending.deadline);
  if (pending.waiting) {
    --waiting_;
    hosts_.at(pending.waiting->origin).waiting.erase(id);
    return;
  }
  if (!pending.easy) return;
  HttpEasy& easy = *pending.easy;
  long connections = 0;
  curl().easy_getinfo(easy.handle(), CURLINFO_NUM_CONNECTS, &connections);
  counts_.connections += static_cast<std::uint64_t>(connections);
  counts_.requests += easy.was_given() ? 1 : 0;
  curl().multi_remove_handle(sockets_->multi(),
                             easy.handle());  // in the middle of a request this closes the connection
  const std::string origin = easy.origin;
  easy.clear();
  idle_.push_back(std::move(pending.easy));
  next_of(origin);
}

void HttpClient::Engine::next_of(const std::string& origin) {
  const auto found = hosts_.find(origin);
  Host& host = found->second;
  --host.active;
  if (!host.waiting.empty()) {
    const auto [id, pending] = *host.waiting.begin();
    host.waiting.erase(host.waiting.begin());
    --waiting_;
    ++host.active;
    Waiting waiting = std::move(*pending->waiting);
    pending->waiting.reset();
    start(id, *pending, std::move(waiting.origin), std::move(waiting.request));
  } else if (host.active == 0) {
    hosts_.erase(found);
  }
}

HttpClient::HttpClient(AsioLoop& loop, HttpLimits limits)
    : engine_(std::make_shared<Engine>(loop, std::move(limits))) {
  engine_->open();
}
HttpClient::~HttpClient() {
  engine_->close();
}

HttpTransport::RequestId HttpClient::send(HttpRequest request, Instant deadline, Handler handler) {
  return engine_->send(std::move(request), deadline, std::move(handler));
}
void HttpClient::cancel(RequestId request) {
  engine_->cancel(request);
}
HttpCounts HttpClient::counts() const {
  return engine_->counts();
}

}  // namespace holdfast::runtime
