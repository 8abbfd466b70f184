#include "ws_beast.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include "ws/url.hpp"

namespace holdfast::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

class Reader {
 public:
  Reader(asio::io_context& context, std::uint64_t skip) : stream(context), skip_(skip) {}

  void read() {
    stream.async_read(buffer_, [this](beast::error_code error, std::size_t bytes) {
      if (error) return;
      if (count_++ == skip_) {
        cpu_s_ = process_cpu_s();
        wall_s_ = wall_s();
      }
      bytes_ += bytes;
      buffer_.consume(bytes);
      read();
    });
  }
  [[nodiscard]] Figures result() const {
    return figures(static_cast<double>(count_ - skip_), process_cpu_s() - cpu_s_, wall_s() - wall_s_);
  }

  // The executor is named: Asio's type-erased one would cost Beast some of its speed.
  beast::websocket::stream<asio::basic_stream_socket<asio::ip::tcp, asio::io_context::executor_type>> stream;

 private:
  beast::flat_buffer buffer_;
  std::uint64_t skip_;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
  double cpu_s_ = 0;
  double wall_s_ = 0;
};

}  // namespace

Figures receive_with_beast(const std::string& url, std::uint64_t skip) {
  const ws::Url parsed = ws::parse_url(url).value();
  asio::io_context context(1);
  Reader reader(context, skip);
  reader.stream.next_layer().connect({asio::ip::make_address(parsed.host), parsed.port});
  reader.stream.handshake(parsed.authority(), parsed.target);
  reader.read();
  context.run();
  return reader.result();
}

}  // namespace holdfast::bench
