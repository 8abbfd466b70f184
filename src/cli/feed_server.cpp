// The server side of the feed, on Beast: an implementation of RFC 6455 other than the one under trial.
#include "cli/feed_server.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/signals.hpp"

namespace holdfast::cli {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

class Server;

// One client: request, upgrade, then messages from `next_` on for as long as it reads. Nothing is queued for it:
// one message is under way, the rest is in the history. So a slow reader is held up by TCP and costs no memory; if
// it falls behind the history it sees a hole. Lives as long as one of its operations is pending.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Server& server, tcp::socket socket) : server_(server), socket_(std::in_place, std::move(socket)) {}

  void start();
  void said();  // its stream has something new
  void close(websocket::close_code code);
  [[nodiscard]] std::size_t stream() const { return stream_; }

 private:
  void routed(error_code error);
  void answer(http::status status, std::string text);
  void accepted(error_code error);
  void read();
  void sent(error_code error);
  void cut();
  void finish();

  Server& server_;
  std::optional<beast::tcp_stream> socket_;  // until it is a WebSocket
  std::optional<websocket::stream<beast::tcp_stream>> ws_;
  beast::flat_buffer buffer_;
  http::request<http::empty_body> request_;
  http::response<http::string_body> response_;
  std::string message_;  // being sent
  std::size_t stream_ = 0;
  std::int64_t next_ = 0;
  std::int64_t sent_ = 0;
  bool open_ = false;
  bool sending_ = false;
};

class Server {
 public:
  Server(runtime::AsioLoop& loop, const FeedOptions& options)
      : loop_(loop), options_(options), acceptor_(loop.context()), streams_(options), listeners_(options.streams) {}

  Result<tcp::endpoint> listen();
  void start() {
    accept();
    if (options_.begin_with == 0) begin();
  }
  void stop();

  [[nodiscard]] const FeedOptions& options() const { return options_; }
  [[nodiscard]] const FeedStreams& streams() const { return streams_; }
  void add(Session& session) {
    listeners_[session.stream()].push_back(&session);
    if (++listening_ == options_.begin_with && !begun_) begin();
  }
  void remove(Session& session) {
    if (std::erase(listeners_[session.stream()], &session) > 0) --listening_;
    if (stopping_) stop_when_alone();
  }

 private:
  void accept();
  void begin() {
    begun_ = true;
    streams_.begin(loop_.instant());
    wait_for_beat();
  }
  void wait_for_beat();
  void stop_when_alone();

  runtime::AsioLoop& loop_;
  const FeedOptions options_;
  tcp::acceptor acceptor_;
  FeedStreams streams_;
  std::vector<std::vector<Session*>> listeners_;  // by stream
  std::int64_t listening_ = 0;
  bool begun_ = false;
  bool stopping_ = false;
};

void Session::start() {
  socket_->socket().set_option(tcp::no_delay(true));
  socket_->expires_after(10s);
  http::async_read(*socket_, buffer_, request_,
                   [self = shared_from_this()](error_code error, std::size_t) { self->routed(error); });
}

void Session::routed(error_code error) {
  if (error) return;
  bool bad_since = false;
  const std::string_view target(request_.target().data(), request_.target().size());
  const auto wanted = parse_feed_target(target, bad_since);
  const auto stream = wanted ? server_.streams().find(wanted->stream) : std::nullopt;
  if (!stream) {
    return answer(http::status::not_found, "there are the streams /stream/s0 to /stream/s" +
                                               std::to_string(server_.options().streams - 1) + "\n");
  }
  if (bad_since) return answer(http::status::bad_request, "since is the number of a message, 0 or more\n");
  if (!websocket::is_upgrade(request_)) return answer(http::status::upgrade_required, "this is a WebSocket\n");
  stream_ = *stream;
  next_ = wanted->since ? *wanted->since + 1 : server_.streams().latest(stream_) + 1;
  socket_->expires_never();
  ws_.emplace(std::move(*socket_));
  socket_.reset();
  websocket::stream_base::timeout timeouts{};
  timeouts.handshake_timeout = 10s;  // also bounds the closing handshake
  timeouts.idle_timeout = websocket::stream_base::none();
  ws_->set_option(timeouts);
  ws_->read_message_max(std::size_t{64} << 10U);
  ws_->auto_fragment(false);
  ws_->text(true);
  ws_->async_accept(request_, [self = shared_from_this()](error_code failed) { self->accepted(failed); });
}

void Session::answer(http::status status, std::string text) {
  response_.result(status);
  response_.version(request_.version());
  response_.set(http::field::content_type, "text/plain; charset=utf-8");
  if (status == http::status::upgrade_required) response_.set(http::field::upgrade, "websocket");
  response_.body() = std::move(text);
  response_.keep_alive(false);
  response_.prepare_payload();
  http::async_write(*socket_, response_, [self = shared_from_this()](error_code, std::size_t) {
    error_code ignored;
    self->socket_->socket().shutdown(tcp::socket::shutdown_send, ignored);
  });
}

void Session::accepted(error_code error) {
  if (error) return;
  open_ = true;
  buffer_.clear();
  server_.add(*this);
  read();
  said();
}

// Reading is what answers pings and notices the end. What clients say (subscriptions) is heard and not acted on.
void Session::read() {
  ws_->async_read(buffer_, [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->finish();
    self->buffer_.clear();
    self->read();
  });
}

void Session::said() {
  if (!open_ || sending_) return;
  const FeedStreams& streams = server_.streams();
  if (next_ > streams.latest(stream_)) return;
  next_ = std::max(next_, streams.oldest(stream_));
  message_ = streams.render(stream_, next_);
  ++next_;
  sending_ = true;
  ws_->async_write(asio::buffer(message_),
                   [self = shared_from_this()](error_code error, std::size_t) { self->sent(error); });
}

void Session::sent(error_code error) {
  sending_ = false;
  if (error) return finish();
  ++sent_;
  const FeedOptions& options = server_.options();
  if (options.drop_every > 0 && sent_ >= options.drop_every) return cut();
  if (options.close_every > 0 && sent_ >= options.close_every) {
    return close(static_cast<websocket::close_code>(options.close_code));
  }
  said();
}

void Session::close(websocket::close_code code) {
  if (!open_) return;
  open_ = false;
  ws_->async_close(websocket::close_reason(code), [self = shared_from_this()](error_code) { self->finish(); });
}

void Session::cut() {
  error_code ignored;
  beast::get_lowest_layer(*ws_).socket().close(ignored);
  finish();
}

void Session::finish() {
  open_ = false;
  server_.remove(*this);
}

std::string what_is_wrong(const FeedOptions& options, const error_code& error) {
  const std::string where = options.listen + ":" + std::to_string(options.port);
  if (error == asio::error::address_in_use) {
    return "port " + std::to_string(options.port) + " is in use: choose another --port, or 0 for one that is free";
  }
  if (error == asio::error::access_denied) {
    return "may not listen on " + where + ": choose a --port from 1024 on, or 0 for one that is free";
  }
  return "cannot listen on " + where + ": " + error.message() + ": choose an address of this machine for --listen";
}

Result<tcp::endpoint> Server::listen() {
  error_code error;
  const auto address = asio::ip::make_address(options_.listen, error);
  if (error) {
    return fail(Code::usage, "'" + options_.listen + "' is no IP address: use 127.0.0.1, or 0.0.0.0 for all");
  }
  const tcp::endpoint endpoint(address, options_.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(4096, error);
  const tcp::endpoint bound = error ? endpoint : acceptor_.local_endpoint(error);
  if (error) return fail(Code::unavailable, what_is_wrong(options_, error));
  return bound;
}

void Server::accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      std::make_shared<Session>(*this, std::move(socket))->start();
      return accept();
    }
    // Out of descriptors, most likely: those in use come back.
    loop_.call_after(100ms, [this] {
      if (!stopping_) accept();
    });
  });
}

void Server::wait_for_beat() {
  const auto due = streams_.next_due();
  if (!due) return;
  // Beats that are close together are dealt with together.
  loop_.call_at(std::max(*due, loop_.instant() + 2ms), [this] {
    if (stopping_) return;
    streams_.advance(loop_.now(), [this](std::size_t stream) {
      for (Session* session : listeners_[stream]) session->said();
    });
    wait_for_beat();
  });
}

void Server::stop() {
  if (stopping_) return loop_.stop();  // asked twice: at once
  stopping_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  for (auto& sessions : listeners_) {
    for (Session* session : sessions) session->close(websocket::close_code::going_away);
  }
  loop_.call_after(2s, [this] { loop_.stop(); });
  stop_when_alone();
}

void Server::stop_when_alone() {
  for (const auto& sessions : listeners_) {
    if (!sessions.empty()) return;
  }
  loop_.stop();
}

std::string shown(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

}  // namespace

Result<void> serve_feed(const FeedOptions& options,
                        const std::function<void(std::string_view host_and_port)>& listening) {
  runtime::ignore_broken_pipes();
  runtime::AsioLoop loop(runtime::random_seed());
  Server server(loop, options);
  const auto endpoint = server.listen();
  if (!endpoint) return tl::unexpected<Error>(endpoint.error());
  const runtime::Signals signals(loop, [&](int) { server.stop(); });
  server.start();
  listening(shown(*endpoint));
  loop.run();
  return {};
}

}  // namespace holdfast::cli
