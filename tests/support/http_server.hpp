#pragma once
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/asio_loop.hpp"

namespace holdfast::test {

/// An HTTP/1.1 server on loopback, run by the client's own loop: no thread. What it does with each request is the
/// test's business, down to the byte.
class HttpServer {
  struct Connection;

 public:
  struct Request {
    std::string head;  ///< request line and headers, as they came
    std::string body;
    std::size_t connection = 0;  ///< the how-manieth connection it came on, from 1

    [[nodiscard]] std::string method() const { return head.substr(0, head.find(' ')); }
    [[nodiscard]] std::string target() const {
      const std::size_t begin = head.find(' ') + 1;
      return head.substr(begin, head.find(' ', begin) - begin);
    }
    /// A header's value, whatever its case; nothing where it is missing.
    [[nodiscard]] std::optional<std::string> header(std::string name) const {
      const std::string all = lower(head);
      name = "\r\n" + lower(std::move(name)) + ":";
      const std::size_t at = all.find(name);
      if (at == std::string::npos) return std::nullopt;
      const std::size_t begin = std::min(head.find_first_not_of(' ', at + name.size()), head.size());
      return head.substr(begin, head.find("\r\n", begin) - begin);
    }
  };

  /// The other end of one request. May be kept and answered later; it does not keep the connection open.
  class Answer {
   public:
    /// These bytes, as they are.
    void raw(std::string bytes) const {
      if (const auto connection = connection_.lock()) connection->write(std::move(bytes));
    }
    void send(int status, const std::string& body, const std::string& headers = "") const {
      raw("HTTP/1.1 " + std::to_string(status) + " Words\r\n" + headers +
          "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    }
    /// Closes once all was written.
    void close() const {
      if (const auto connection = connection_.lock()) connection->close_when_written();
    }
    /// So that the client sees a reset.
    void reset() const {
      if (const auto connection = connection_.lock()) connection->reset();
    }

   private:
    friend class HttpServer;
    explicit Answer(std::weak_ptr<Connection> connection) : connection_(std::move(connection)) {}
    std::weak_ptr<Connection> connection_;
  };
  using Serve = std::function<void(const Request&, Answer)>;

  /// `tls`: a context as Authority::server() makes; nothing: plain.
  HttpServer(runtime::AsioLoop& loop, Serve serve, std::shared_ptr<SSL_CTX> tls = nullptr)
      : state_(std::make_shared<State>(loop, std::move(serve))) {
    if (tls) {
      SSL_CTX_up_ref(tls.get());  // the context frees what it is given
      state_->tls.emplace(tls.get());
    }
    state_->accept();
  }
  ~HttpServer() { stop(); }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Refuses new connections and closes those that there are.
  void stop() {
    boost::system::error_code ignored;
    state_->acceptor.close(ignored);
    close_all();
    state_->stopped = true;
  }
  void close_all() {
    for (const auto& weak : state_->open) {
      if (const auto connection = weak.lock()) connection->close();
    }
    state_->open.clear();
  }

  [[nodiscard]] std::uint16_t port() const { return state_->port; }
  [[nodiscard]] std::string url(const std::string& target = "/", const std::string& host = "127.0.0.1") const {
    return (state_->tls ? "https://" : "http://") + host + ":" + std::to_string(state_->port) + target;
  }
  [[nodiscard]] std::size_t connections() const { return state_->accepted; }
  [[nodiscard]] std::size_t requests() const { return state_->requests; }

 private:
  using tcp = boost::asio::ip::tcp;

  struct State : std::enable_shared_from_this<State> {
    State(runtime::AsioLoop& loop, Serve serve_)
        : serve(std::move(serve_)),
          acceptor(loop.context(), tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)),
          port(acceptor.local_endpoint().port()) {}

    void accept() {
      acceptor.async_accept([self = shared_from_this()](const boost::system::error_code& error, tcp::socket socket) {
        if (error) return;
        const auto connection = std::make_shared<Connection>(self, std::move(socket), ++self->accepted);
        self->open.push_back(connection);
        connection->begin();
        self->accept();
      });
    }

    Serve serve;
    tcp::acceptor acceptor;
    std::uint16_t port;
    std::optional<boost::asio::ssl::context> tls;
    std::vector<std::weak_ptr<Connection>> open;
    std::size_t accepted = 0, requests = 0;
    bool stopped = false;
  };

  struct Connection : std::enable_shared_from_this<Connection> {
    Connection(std::shared_ptr<State> state_, tcp::socket socket_, std::size_t number_)
        : state(std::move(state_)), socket(std::move(socket_)), number(number_) {
      socket.set_option(tcp::no_delay(true));
      if (state->tls) secure.emplace(socket, *state->tls);
    }

    void begin() {
      if (!secure) return read();
      secure->async_handshake(boost::asio::ssl::stream_base::server,
                              [self = shared_from_this()](const boost::system::error_code& error) {
                                if (!error) self->read();
                              });
    }
    void read() {
      const auto done = [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
        if (error) return self->close();
        self->received.append(self->buffer, bytes);
        self->serve();
        self->read();
      };
      if (secure) {
        secure->async_read_some(boost::asio::buffer(buffer), done);
      } else {
        socket.async_read_some(boost::asio::buffer(buffer), done);
      }
    }
    void serve() {
      for (;;) {
        const std::size_t end = received.find("\r\n\r\n");
        if (end == std::string::npos) return;
        Request request;
        request.head = received.substr(0, end + 2);
        std::size_t length = 0;
        if (const auto text = request.header("Content-Length")) {
          std::from_chars(text->data(), text->data() + text->size(), length);
        }
        if (received.size() < end + 4 + length) return;
        request.body = received.substr(end + 4, length);
        request.connection = number;
        received.erase(0, end + 4 + length);
        ++state->requests;
        state->serve(request, Answer(weak_from_this()));
      }
    }
    void write(std::string bytes) {
      to_write.push_back(std::move(bytes));
      if (to_write.size() == 1) write_next();
    }
    void write_next() {
      const auto done = [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        if (error) return self->close();
        self->to_write.pop_front();
        if (!self->to_write.empty()) return self->write_next();
        if (self->closing) self->close();
      };
      if (secure) {
        boost::asio::async_write(*secure, boost::asio::buffer(to_write.front()), done);
      } else {
        boost::asio::async_write(socket, boost::asio::buffer(to_write.front()), done);
      }
    }
    void close_when_written() {
      closing = true;
      if (to_write.empty()) close();
    }
    void close() {
      boost::system::error_code ignored;
      socket.close(ignored);
    }
    void reset() {
      boost::system::error_code ignored;
      socket.set_option(boost::asio::socket_base::linger(true, 0), ignored);
      close();
    }

    std::shared_ptr<State> state;
    tcp::socket socket;
    std::optional<boost::asio::ssl::stream<tcp::socket&>> secure;
    std::size_t number;
    std::string received;
    std::deque<std::string> to_write;
    bool closing = false;
    char buffer[16384];
  };

  [[nodiscard]] static std::string lower(std::string text) {
    for (char& letter : text) {
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return text;
  }

  std::shared_ptr<State> state_;
};

}  // namespace holdfast::test
