#pragma once
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/asio_loop.hpp"
#include "runtime/http_server.hpp"

namespace holdfast::runtime {

class HttpSession;

/// What a connection asks of its server. Not called after the session was cut by the server.
class HttpSessionHost {
 public:
  virtual ~HttpSessionHost() = default;
  [[nodiscard]] virtual AsioLoop& loop() = 0;
  [[nodiscard]] virtual const HttpServerOptions& options() const = 0;
  [[nodiscard]] virtual bool is_draining() const = 0;
  /// Between two requests: it can be closed without a loss.
  virtual void set_idle(HttpSession& session, bool is_idle) = 0;
  /// False: too many are under way.
  [[nodiscard]] virtual bool begin_request() = 0;
  virtual void end_request() = 0;
  virtual void count(bool was_refused) = 0;
  virtual void ended(HttpSession& session) = 0;
};

/// One connection: a request, its answer, and again. Lives as long as one of its operations is pending.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  HttpSession(std::uint64_t id, HttpSessionHost& host, Socket socket);

  [[nodiscard]] std::uint64_t id() const { return id_; }
  void start() { wait(); }
  /// No further request: idle it ends at once, else with the answer to the one it has.
  void drain();
  /// At once, without a word, and without telling the server.
  void cut();
  /// At once, with 503: the server is full.
  void turn_away();

 private:
  class Exchange;
  enum class State { idle, head, body, handling, writing, lingering, ended };
  using ErrorCode = boost::system::error_code;

  void wait();
  void read_head();
  void got_head(ErrorCode error);
  void take_request(HttpIncoming request);
  void go_ahead();
  void read_body();
  void got_body(ErrorCode error);
  void handle();
  void watch();
  void look_for_end();
  void tell_gone();
  void refuse(int status, std::string_view why);
  void write(HttpAnswer answer);
  void wrote(ErrorCode error);
  void linger();
  void discard();
  void end();
  void limit(Duration duration, void (HttpSession::*passed)());
  void no_limit();
  void head_is_late();
  void body_is_late();
  void leave_request();

  const std::uint64_t id_;
  HttpSessionHost* host_;
  AsioLoop& loop_;
  Socket socket_;
  State state_ = State::idle;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  HttpIncoming request_;
  std::uint64_t requests_ = 0;  // the number of the one under way
  bool under_way_ = false;      // counted as such by the server
  bool keeps_ = true;           // another request may follow
  bool answers_head_ = false;
  bool is_old_ = false;  // HTTP/1.0
  bool watching_ = false;
  bool gone_ = false;        // the other side sends nothing more
  std::optional<int> late_;  // the refusal for what took too long
  std::function<void()> hung_up_;
  std::function<void(bool)> written_;
  std::string head_, body_;  // being written
  std::size_t wasted_ = 0;
  TimerId timer_ = 0;
};

}  // namespace holdfast::runtime
