// One of the files that see Beast: its parser takes requests apart (docs/adr/0013 on what that costs to compile).
#include "runtime/http_session.hpp"

#include <poll.h>

#include <array>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <utility>

#include "holdfast/assert.hpp"

namespace holdfast::runtime {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

/// After a refusal: how much of what is still coming is thrown away, so that the answer is not lost with a reset.
constexpr std::size_t waste_most = std::size_t{1} << 20U;
constexpr std::size_t waste_at_once = 4096;
constexpr Duration linger_limit = std::chrono::seconds(2);
/// Whether a client that has sent something ahead is still there.
constexpr Duration look_again = std::chrono::milliseconds(200);
/// Above the headers' limit, so that this one is never what is hit first.
constexpr std::size_t read_ahead = std::size_t{64} << 10U;

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

struct Refusal {
  int status = 400;
  std::string_view why;
};

/// What the parser says is wrong; nothing where the connection is over.
std::optional<Refusal> refusal_for(const boost::system::error_code& error) {
  if (error.category() != make_error_code(http::error::bad_method).category()) return std::nullopt;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Refusal{431, "The request's line and headers are too long."};
  }
  if (error == http::error::body_limit) return Refusal{413, "The request's body is too large."};
  if (error == http::error::bad_version) return Refusal{505, "This server speaks HTTP/1.1."};
  if (error == http::error::bad_transfer_encoding || error == http::error::bad_content_length ||
      error == http::error::multiple_content_length) {
    return Refusal{400, "The request says in two ways, or in a wrong one, how long its body is."};
  }
  return Refusal{400, "This is no HTTP request."};
}

template <class Fields>
std::size_t count(const Fields& fields, http::field name) {
  const auto range = fields.equal_range(name);
  return static_cast<std::size_t>(std::distance(range.first, range.second));
}

/// What a parser lets pass, and another reader could take for something else (RFC 9112, 3.2, 6.1, 6.3).
template <class Request>
std::optional<Refusal> refusal_for(const Request& request) {
  const bool is_old = request.version() < 11;
  if (request.version() != 10 && request.version() != 11) return Refusal{505, "This server speaks HTTP/1.1."};
  const std::size_t codings = count(request, http::field::transfer_encoding);
  if (codings > 0) {
    if (is_old) return Refusal{400, "HTTP/1.0 has no Transfer-Encoding."};
    if (codings > 1 || !beast::iequals(request[http::field::transfer_encoding], "chunked")) {
      return Refusal{501, "The only transfer coding here is chunked."};
    }
  }
  if (count(request, http::field::content_length) > 1) {
    return Refusal{400, "The request says in two ways, or in a wrong one, how long its body is."};
  }
  const std::size_t hosts = count(request, http::field::host);
  if (hosts > 1 || (hosts == 0 && !is_old)) return Refusal{400, "The request needs one Host header."};
  if (count(request, http::field::expect) > 0 && !beast::iequals(request[http::field::expect], "100-continue")) {
    return Refusal{417, "The only expectation here is 100-continue."};
  }
  return std::nullopt;
}

/// In the form that all handlers expect; empty where it is none of ours.
std::string origin_form(std::string_view target, std::string_view method) {
  if (target == "*") return method == "OPTIONS" ? "*" : "";
  if (target.starts_with('/')) return std::string(target);
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::size_t path = target.find_first_of("/?", scheme.size());
    if (path == std::string_view::npos) return "/";
    return (target[path] == '?' ? "/" : "") + std::string(target.substr(path));
  }
  return "";
}

/// Of a target with a scheme; it counts for more than Host (RFC 9112).
std::optional<std::string> authority_in(std::string_view target) {
  const std::size_t scheme = target.starts_with('/') ? std::string_view::npos : target.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  return std::string(target.substr(scheme + 3, target.find_first_of("/?", scheme + 3) - scheme - 3));
}

std::string head_of(const HttpAnswer& answer, bool keeps, bool is_old, WallTime now) {
  const std::string_view reason =
      view(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(answer.status))));
  std::string head = "HTTP/1.1 " + std::to_string(answer.status) + ' ' + std::string(reason) +
                     "\r\nDate: " + write_http_date(now) + "\r\n";
  for (const HttpHeader& header : answer.headers) {
    HOLDFAST_ASSERT(header.value.find_first_of("\r\n") == std::string::npos, "a header is one line");
    head += header.name + ": " + header.value + "\r\n";
  }
  if (answer.status != 204) head += "Content-Length: " + std::to_string(answer.body.size()) + "\r\n";
  if (!keeps) head += "Connection: close\r\n";
  if (keeps && is_old) head += "Connection: keep-alive\r\n";
  return head + "\r\n";
}

}  // namespace

class HttpSession::Exchange final : public HttpExchange {
 public:
  Exchange(std::shared_ptr<HttpSession> session, HttpIncoming request)
      : session_(session), number_(session->requests_), request_(std::move(request)) {}
  ~Exchange() override {
    if (HttpSession* session = current()) session->refuse(500, "The request was dropped: a fault of this server.");
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] const HttpIncoming& request() const override { return request_; }
  void answer(HttpAnswer answer, std::function<void(bool)> written) override {
    const auto session = session_.lock();
    if (current() == nullptr) {
      if (written) written(false);
      return;
    }
    session->written_ = std::move(written);
    session->write(std::move(answer));
  }
  void on_hang_up(std::function<void()> called) override {
    HttpSession* session = current();
    if (session == nullptr) return;
    session->hung_up_ = std::move(called);
    if (!session->gone_) return;
    session->loop_.post([weak = session_, number = number_] {
      const auto self = weak.lock();
      if (self && self->requests_ == number) self->tell_gone();
    });
  }

 private:
  /// Null: the connection is gone, or this was answered. It is kept alive by its pending operations meanwhile.
  [[nodiscard]] HttpSession* current() const {
    const auto session = session_.lock();
    const bool waits = session && session->state_ == State::handling && session->requests_ == number_;
    return waits ? session.get() : nullptr;
  }

  const std::weak_ptr<HttpSession> session_;
  const std::uint64_t number_;
  const HttpIncoming request_;
};

HttpSession::HttpSession(std::uint64_t id, HttpSessionHost& host, Socket socket)
    : id_(id),
      host_(&host),
      loop_(host.loop()),
      socket_(std::move(socket)),
      buffer_(host.options().limits.header_bytes_max + read_ahead) {}

void HttpSession::limit(Duration duration, void (HttpSession::*passed)()) {
  no_limit();
  timer_ = loop_.call_after(duration, [weak = weak_from_this(), passed] {
    const auto self = weak.lock();
    if (!self || self->state_ == State::ended) return;
    self->timer_ = 0;
    (self.get()->*passed)();
  });
}

void HttpSession::no_limit() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
}

// ---- Reading ----

void HttpSession::wait() {
  keeps_ = true;
  parser_.reset();
  request_ = {};
  if (buffer_.size() > 0) return read_head();  // sent ahead
  if (host_->is_draining()) return end();
  buffer_.shrink_to_fit();  // an idle connection holds next to nothing
  state_ = State::idle;
  host_->set_idle(*this, true);
  limit(host_->options().limits.idle, &HttpSession::end);
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](ErrorCode error) {
    if (self->state_ != State::idle) return;
    if (error) return self->end();
    self->read_head();
  });
}

void HttpSession::read_head() {
  host_->set_idle(*this, false);
  state_ = State::head;
  late_.reset();
  const HttpServerLimits& limits = host_->options().limits;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
  parser_->body_limit(limits.body_bytes_max);
  limit(limits.head, &HttpSession::head_is_late);
  http::async_read_header(socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, std::size_t) {
    if (self->state_ == State::head) self->got_head(error);
  });
}

void HttpSession::head_is_late() {
  // Whoever has not said a word is not told one either: a browser opens connections ahead.
  if (buffer_.size() == 0) return end();
  late_ = 408;
  ErrorCode ignored;
  socket_.cancel(ignored);
}

void HttpSession::body_is_late() {
  late_ = 408;
  ErrorCode ignored;
  socket_.cancel(ignored);
}

void HttpSession::got_head(ErrorCode error) {
  no_limit();
  answers_head_ = false;
  is_old_ = false;
  if (late_) return refuse(*late_, "The request did not come in time.");
  if (error) {
    const auto refusal = refusal_for(error);
    return refusal ? refuse(refusal->status, refusal->why) : end();
  }
  const auto& message = parser_->get();
  HttpIncoming request;
  request.method = view(message.method_string());
  answers_head_ = message.method() == http::verb::head;
  is_old_ = message.version() < 11;
  if (const auto refusal = refusal_for(message)) return refuse(refusal->status, refusal->why);
  request.target = origin_form(view(message.target()), request.method);
  if (request.target.empty()) return refuse(400, "The request's target is no path.");
  // Now, and not when the body is there: what its trailers say is not among the headers.
  const auto authority = authority_in(view(message.target()));
  for (const auto& field : message) {
    const bool is_host = authority && field.name() == http::field::host;
    request.headers.push_back(
        {std::string(view(field.name_string())), is_host ? *authority : std::string(view(field.value()))});
  }
  keeps_ = parser_->keep_alive() && !host_->is_draining();
  take_request(std::move(request));
}

void HttpSession::take_request(HttpIncoming request) {
  const HttpServerOptions& options = host_->options();
  request_ = std::move(request);
  if (options.admit) {
    if (std::optional<HttpAnswer> answer = options.admit(request_)) {
      host_->count(true);
      keeps_ = keeps_ && parser_->is_done();
      return write(*std::move(answer));
    }
  }
  if (!host_->begin_request()) return refuse(503, "Too many requests are under way.");
  under_way_ = true;
  if (parser_->is_done()) return handle();
  const std::string* expects = request_.header("expect");
  if (expects != nullptr && !is_old_ && buffer_.size() == 0) return go_ahead();
  read_body();
}

void HttpSession::go_ahead() {
  static constexpr std::string_view words = "HTTP/1.1 100 Continue\r\n\r\n";
  state_ = State::body;
  limit(host_->options().limits.body, &HttpSession::end);
  asio::async_write(socket_, asio::buffer(words), [self = shared_from_this()](ErrorCode error, std::size_t) {
    if (self->state_ != State::body) return;
    if (error) return self->end();
    self->read_body();
  });
}

void HttpSession::read_body() {
  state_ = State::body;
  limit(host_->options().limits.body, &HttpSession::body_is_late);
  http::async_read(socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, std::size_t) {
    if (self->state_ == State::body) self->got_body(error);
  });
}

void HttpSession::got_body(ErrorCode error) {
  no_limit();
  if (late_) return refuse(*late_, "The request's body did not come in time.");
  if (!error) return handle();
  const auto refusal = refusal_for(error);
  if (!refusal) return end();
  if (error == http::error::buffer_overflow) return refuse(400, "A chunk's own line is too long.");
  refuse(refusal->status, refusal->why);
}

// ---- Answering ----

void HttpSession::handle() {
  state_ = State::handling;
  ++requests_;
  request_.body = std::move(parser_->get().body());
  parser_.reset();
  hung_up_ = {};
  gone_ = false;
  watch();
  host_->options().serve(std::make_shared<Exchange>(shared_from_this(), std::move(request_)));
}

/// While a request is under way nothing is read: but that the other side has gone is noticed.
void HttpSession::watch() {
  watching_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this(), request = requests_](ErrorCode error) {
    if (self->requests_ != request || self->state_ != State::handling) return;
    self->watching_ = false;
    if (!error) self->look_for_end();
  });
}

void HttpSession::look_for_end() {
  pollfd looked{socket_.native_handle(), POLLRDHUP, 0};
  if (::poll(&looked, 1, 0) > 0) {
    gone_ = true;
    return tell_gone();
  }
  // Something was sent ahead, and is not read before its time: the system would tell of it again and again.
  loop_.call_after(look_again, [weak = weak_from_this(), request = requests_] {
    const auto self = weak.lock();
    if (self && self->requests_ == request && self->state_ == State::handling) self->look_for_end();
  });
}

void HttpSession::tell_gone() {
  if (state_ != State::handling) return;
  if (const auto called = std::exchange(hung_up_, {})) called();
}

void HttpSession::refuse(int status, std::string_view why) {
  host_->count(true);
  keeps_ = keeps_ && state_ == State::handling;  // where the next request begins is not known otherwise
  HttpAnswer answer = host_->options().refuse(status, why);
  if (status == 503) answer.headers.push_back({"Retry-After", "1"});
  write(std::move(answer));
}

void HttpSession::write(HttpAnswer answer) {
  if (state_ == State::handling) host_->count(false);
  state_ = State::writing;
  hung_up_ = {};
  ErrorCode ignored;
  if (std::exchange(watching_, false)) socket_.cancel(ignored);
  keeps_ = keeps_ && !host_->is_draining();
  head_ = head_of(answer, keeps_, is_old_, loop_.wall());
  body_ = answers_head_ || answer.status == 204 ? std::string() : std::move(answer.body);
  limit(host_->options().limits.write, &HttpSession::end);
  const std::array<asio::const_buffer, 2> parts{asio::buffer(head_), asio::buffer(body_)};
  asio::async_write(socket_, parts, [self = shared_from_this()](ErrorCode error, std::size_t) {
    if (self->state_ == State::writing) self->wrote(error);
  });
}

void HttpSession::wrote(ErrorCode error) {
  no_limit();
  leave_request();
  head_.clear();
  body_ = {};
  const auto written = std::exchange(written_, {});
  const auto self = shared_from_this();
  if (error) {
    end();
  } else if (keeps_) {
    wait();
  } else {
    linger();
  }
  if (written) written(!error);
}

void HttpSession::linger() {
  state_ = State::lingering;
  ErrorCode error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) return end();
  limit(linger_limit, &HttpSession::end);
  discard();
}

void HttpSession::discard() {
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(waste_at_once),
                          [self = shared_from_this()](ErrorCode error, std::size_t bytes) {
                            if (self->state_ != State::lingering) return;
                            self->wasted_ += bytes;
                            if (error || self->wasted_ > waste_most) return self->end();
                            self->discard();
                          });
}

// ---- The end ----

void HttpSession::leave_request() {
  if (std::exchange(under_way_, false)) host_->end_request();
}

void HttpSession::drain() {
  keeps_ = false;
  if (state_ == State::idle) end();
}

void HttpSession::turn_away() {
  refuse(503, "Too many connections are open.");
}

void HttpSession::cut() {
  if (state_ == State::ended) return;
  no_limit();
  leave_request();
  state_ = State::ended;
  ErrorCode ignored;
  socket_.close(ignored);
  // Each of them may end others, but not this: somebody holds it while it calls.
  if (const auto called = std::exchange(hung_up_, {})) called();
  if (const auto written = std::exchange(written_, {})) written(false);
}

void HttpSession::end() {
  if (state_ == State::ended) return;
  const auto self = shared_from_this();
  host_->set_idle(*this, false);
  cut();
  host_->ended(*this);
}

}  // namespace holdfast::runtime
