#include "runtime/http_server.hpp"

#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <map>
#include <utility>

#include "runtime/asio_loop.hpp"
#include "runtime/http_session.hpp"

namespace holdfast::runtime {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr Duration pause_without_descriptors = std::chrono::milliseconds(100);

HttpAnswer plain(int status, std::string_view why) {
  HttpAnswer answer;
  answer.status = status;
  answer.headers = {{"Content-Type", "text/plain; charset=utf-8"}};
  answer.body = std::string(why) + "\n";
  return answer;
}

}  // namespace

class HttpServer::Impl final : public HttpSessionHost, public std::enable_shared_from_this<Impl> {
 public:
  using Protocol = asio::generic::stream_protocol;

  Impl(AsioLoop& loop, Listener listener, HttpServerOptions options)
      : loop_(loop), listener_(std::move(listener)), options_(std::move(options)), acceptor_(loop.context()) {
    if (!options_.refuse) options_.refuse = plain;
    acceptor_.assign(Protocol(listener_.family(), 0), listener_.take_descriptor());
  }

  void accept();
  void drain(Duration limit, std::function<void()> done);
  void close();
  [[nodiscard]] Counts counts() const { return {sessions_.size(), requests_, served_, refused_}; }
  [[nodiscard]] const ListenAddress& address() const { return listener_.address(); }

  [[nodiscard]] AsioLoop& loop() override { return loop_; }
  [[nodiscard]] const HttpServerOptions& options() const override { return options_; }
  [[nodiscard]] bool is_draining() const override { return draining_; }
  void set_idle(HttpSession& session, bool is_idle) override;
  bool begin_request() override {
    if (requests_ >= options_.limits.requests_max) return false;
    ++requests_;
    return true;
  }
  void end_request() override { --requests_; }
  void count(bool was_refused) override { ++(was_refused ? refused_ : served_); }
  void ended(HttpSession& session) override;

 private:
  using Sessions = std::map<std::uint64_t, std::shared_ptr<HttpSession>>;  // by id
  void greet(HttpSession::Socket socket);
  void cut_all();
  void tell_when_empty();

  AsioLoop& loop_;
  Listener listener_;
  HttpServerOptions options_;
  asio::basic_socket_acceptor<Protocol> acceptor_;
  Sessions sessions_;
  std::map<std::uint64_t, std::uint64_t> idle_;        // longest first; to the session's id
  std::map<std::uint64_t, std::uint64_t> idle_since_;  // the other way round
  std::uint64_t last_id_ = 0, last_idle_ = 0;
  std::size_t requests_ = 0;
  std::uint64_t served_ = 0, refused_ = 0;
  bool draining_ = false;
  bool closed_ = false;
  std::function<void()> drained_;
  TimerId timer_ = 0;
};

void HttpServer::Impl::accept() {
  acceptor_.async_accept([self = shared_from_this()](error_code error, HttpSession::Socket socket) {
    if (self->draining_ || self->closed_ || error == asio::error::operation_aborted) return;
    if (!error) {
      self->greet(std::move(socket));
      return self->accept();
    }
    // Out of descriptors, most likely: those in use come back.
    self->loop_.call_after(pause_without_descriptors, [weak = self->weak_from_this()] {
      const auto again = weak.lock();
      if (again && !again->draining_ && !again->closed_) again->accept();
    });
  });
}

void HttpServer::Impl::greet(HttpSession::Socket socket) {
  error_code ignored;
  if (!listener_.address().is_unix()) socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const bool is_full = sessions_.size() >= options_.limits.connections_max;
  if (is_full && !idle_.empty()) {
    const auto longest = sessions_.at(idle_.begin()->second);
    set_idle(*longest, false);
    longest->cut();
    sessions_.erase(longest->id());
  }
  const auto session = std::make_shared<HttpSession>(++last_id_, *this, std::move(socket));
  const bool turned_away = sessions_.size() >= options_.limits.connections_max;
  // Those that are told so are few at a time, whatever comes: an answer, and a moment for it to arrive.
  if (sessions_.size() >= 2 * options_.limits.connections_max) return session->cut();
  sessions_.emplace(session->id(), session);
  if (turned_away) return session->turn_away();
  session->start();
}

void HttpServer::Impl::set_idle(HttpSession& session, bool is_idle) {
  if (const auto found = idle_since_.find(session.id()); found != idle_since_.end()) {
    idle_.erase(found->second);
    idle_since_.erase(found);
  }
  if (!is_idle) return;
  idle_.emplace(++last_idle_, session.id());
  idle_since_.emplace(session.id(), last_idle_);
}

void HttpServer::Impl::ended(HttpSession& session) {
  sessions_.erase(session.id());
  tell_when_empty();
}

void HttpServer::Impl::drain(Duration limit, std::function<void()> done) {
  draining_ = true;
  drained_ = std::move(done);
  error_code ignored;
  listener_.close();
  acceptor_.close(ignored);
  const Sessions sessions = sessions_;
  for (const auto& [id, session] : sessions) session->drain();
  timer_ = loop_.call_after(limit, [this] {
    timer_ = 0;
    cut_all();
    tell_when_empty();
  });
  tell_when_empty();
}

void HttpServer::Impl::tell_when_empty() {
  if (!drained_ || !sessions_.empty()) return;
  loop_.post([self = shared_from_this()] {
    if (self->closed_) return;
    if (const auto done = std::exchange(self->drained_, {})) done();
  });
}

void HttpServer::Impl::cut_all() {
  const Sessions sessions = std::exchange(sessions_, {});
  idle_.clear();
  idle_since_.clear();
  for (const auto& [id, session] : sessions) session->cut();
}

void HttpServer::Impl::close() {
  closed_ = true;
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  error_code ignored;
  listener_.close();
  acceptor_.close(ignored);
  cut_all();
}

Result<std::unique_ptr<HttpServer>> HttpServer::open(AsioLoop& loop, const ListenAddress& address,
                                                     HttpServerOptions options) {
  auto listener = Listener::open(address);
  if (!listener) return tl::unexpected<Error>(listener.error());
  auto impl = std::make_shared<Impl>(loop, *std::move(listener), std::move(options));
  impl->accept();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  impl_->close();
}

const ListenAddress& HttpServer::address() const {
  return impl_->address();
}

void HttpServer::drain(Duration limit, std::function<void()> done) {
  impl_->drain(limit, std::move(done));
}

HttpServer::Counts HttpServer::counts() const {
  return impl_->counts();
}

}  // namespace holdfast::runtime
