// Our reader of frames against Boost.Beast's, on random valid and broken streams that are cut at random places: the
// same messages, pings and pongs in the same order, and the same verdict.
//
// Where the two differ on purpose, and what is done about it here:
//  - A close frame whose reason is not UTF-8: we close with 1007, Beast with 1002. Counted as equal.
//  - Code 1014 (registered since) is good for us, not for Beast; codes from 5000 on are good for Beast, not for us
//    (RFC 6455 section 7.4.2 defines none). Not generated.
//  - A text message that ends inside a character is refused (RFC 6455 section 8.1). Beast 1.81 does not look where
//  its
//    last fragment is empty: it hands the message out, and finds fault with the next one.
//  - Beast looks at a frame when its two first bytes are there, we at the first. Every stream ends in whole frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/_experimental/test/stream.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "holdfast/random.hpp"
#include "ws/frame.hpp"
#include "ws/handshake.hpp"
#include "ws/utf8.hpp"

namespace holdfast::ws {
namespace {

namespace beast = boost::beast;
namespace websocket = beast::websocket;
using BeastClient = websocket::stream<beast::test::stream, false>;

/// What both say of a stream: lines of text, so that a difference can be read.
using Story = std::vector<std::string>;

constexpr std::size_t message_bytes_max = 2000;

Story told_by_us(const std::string& bytes, Random& random) {
  Story story;
  FrameReader reader(message_bytes_max);
  Assembled assembled;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t size = 1 + random.below(std::min<std::size_t>(rest.size(), 200));
    const std::vector<char> piece(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(size));
    rest.remove_prefix(size);
    std::string_view input(piece.data(), piece.size());
    for (;;) {
      const Found found = reader.next(input, assembled);
      const std::string data(found.data);
      if (found.kind == Found::Kind::nothing) break;
      if (found.kind == Found::Kind::message) story.push_back((found.binary ? "binary " : "text ") + data);
      if (found.kind == Found::Kind::ping) story.push_back("ping " + data);
      if (found.kind == Found::Kind::pong) story.push_back("pong " + data);
      if (found.kind == Found::Kind::close) story.push_back("close " + std::to_string(found.code) + " " + data);
      if (found.kind == Found::Kind::error) {
        const bool reason = data.find("reason") != std::string::npos;
        story.push_back("error " + std::to_string(reason ? 1002 : found.code));
      }
    }
    assembled.clear();
  }
  return story;
}

std::string verdict(const beast::error_code& error, const BeastClient& client) {
  using E = websocket::error;
  if (error == E::closed) {
    const auto& reason = client.reason();
    const unsigned code = reason.code == 0 ? 1005 : static_cast<unsigned>(reason.code);
    return "close " + std::to_string(code) + " " + std::string(reason.reason.c_str());
  }
  if (error == E::message_too_big) return "error 1009";
  if (error == E::bad_frame_payload) return "error 1007";
  if (error == websocket::condition::protocol_violation) return "error 1002";
  return "";  // the end of the stream
}

Story told_by_beast(const std::string& bytes, Random& random) {
  boost::asio::io_context context;
  BeastClient client(context);
  beast::test::stream server(context);
  client.next_layer().connect(server);
  client.read_message_max(message_bytes_max);

  bool open = false;
  client.async_handshake("h", "/", [&](beast::error_code error) { open = !error; });
  context.poll();
  const std::string request(server.str());
  const std::string name = "Sec-WebSocket-Key: ";
  const std::string key = request.substr(request.find(name) + name.size(), 24);
  const std::string answer =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
      accept_for(key) + "\r\n\r\n";
  boost::asio::write(server, boost::asio::buffer(answer));
  context.restart();
  context.poll();
  EXPECT_TRUE(open);

  Story story;
  client.control_callback([&](websocket::frame_type type, beast::string_view payload) {
    if (type == websocket::frame_type::ping) story.push_back("ping " + std::string(payload));
    if (type == websocket::frame_type::pong) story.push_back("pong " + std::string(payload));
  });
  boost::asio::write(server, boost::asio::buffer(bytes));
  server.close();
  client.next_layer().read_size(1 + random.below(200));
  for (;;) {
    beast::flat_buffer buffer;
    beast::error_code error;
    client.read(buffer, error);
    if (error) {
      const std::string last = verdict(error, client);
      if (!last.empty()) story.push_back(last);
      return story;
    }
    const std::string data = beast::buffers_to_string(buffer.data());
    story.push_back((client.got_text() ? "text " : "binary ") + data);
  }
}

class StreamMaker {
 public:
  explicit StreamMaker(Random& random) : random_(random) {}

  std::string make() {
    std::string bytes;
    for (std::uint64_t n = 1 + random_.below(8); n > 0; --n) bytes += element();
    if (random_.below(2) == 0) damage(bytes);
    for (int i = 0; i < 10; ++i) bytes += std::string("\x89\0", 2);
    return bytes;
  }

 private:
  std::string text(std::size_t size) {
    const std::vector<std::string> parts = {"a", "word ", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    std::string result;
    while (result.size() < size) result += parts[random_.below(parts.size())];
    if (random_.below(25) == 0) result.insert(random_.below(result.size() + 1), "\xED\xA0");
    return result;
  }
  std::string frame(unsigned first, const std::string& payload) {
    std::string bytes(1, static_cast<char>(first));
    if (payload.size() <= 125) return bytes + static_cast<char>(payload.size()) + payload;
    bytes += '\x7E';
    bytes += static_cast<char>(payload.size() >> 8U);
    bytes += static_cast<char>(payload.size() & 0xFFU);
    return bytes + payload;
  }
  std::string control() {
    const std::string payload = text(random_.below(30));
    return frame(random_.below(2) == 0 ? 0x89 : 0x8A, payload);
  }
  std::string element() {
    const std::size_t size = random_.below(8) == 0 ? random_.below(2300) : random_.below(140);
    const bool is_text = random_.below(2) == 0;
    const std::string payload = text(size);
    switch (random_.below(8)) {
      case 0:
        return control();
      case 1:
        if (random_.below(4) == 0) return close();
        return control();
      case 2:
      case 3:
      case 4:
        return fragments(is_text, payload);
      default:
        return frame(is_text ? 0x81 : 0x82, payload);
    }
  }
  std::string fragments(bool is_text, const std::string& payload) {
    std::string bytes;
    std::size_t at = 0;
    bool first = true;
    for (;;) {
      const std::size_t size = random_.below(payload.size() - at + 1);
      const bool last = random_.below(3) == 0;
      const unsigned opcode = first ? (is_text ? 1U : 2U) : 0U;
      bytes += frame(opcode | (last ? 0x80U : 0U), last ? payload.substr(at) : payload.substr(at, size));
      if (last) return bytes;
      at += size;
      first = false;
      if (random_.below(3) == 0) bytes += control();
    }
  }
  std::string close() {
    if (random_.below(5) == 0) return frame(0x88, random_.below(2) == 0 ? "" : "\x03");
    const std::vector<unsigned> codes = {1000, 1001, 1008, 1013, 3000, 4999, 0,
                                         999,  1004, 1005, 1006, 1015, 1016, 2999};
    const unsigned code = codes[random_.below(codes.size())];
    return frame(
        0x88, std::string{static_cast<char>(code >> 8U), static_cast<char>(code & 0xFFU)} + text(random_.below(60)));
  }
  void damage(std::string& bytes) {
    const std::size_t at = random_.below(bytes.size());
    switch (random_.below(4)) {
      case 0:
        bytes[at] = static_cast<char>(random_.below(256));
        break;
      case 1:
        bytes.erase(at, 1 + random_.below(3));
        break;
      case 2:
        bytes.insert(at, 1, static_cast<char>(random_.below(256)));
        break;
      default:
        bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << random_.below(8)));
        break;
    }
  }

  Random& random_;
};

/// Where the two differ on purpose: see the top of this file.
bool differs_on_purpose(const Story& ours, const Story& beasts) {
  const auto [our, theirs] = std::mismatch(ours.begin(), ours.end(), beasts.begin(), beasts.end());
  if (our != ours.end() && theirs != beasts.end() && *our == "error 1007" && theirs->starts_with("text ")) {
    return !valid_utf8(std::string_view(*theirs).substr(5));
  }
  if (ours.size() != beasts.size() || ours.empty()) return false;
  const auto code_of = [](const std::string& line) {
    return line.starts_with("close ") ? std::stoi(line.substr(6)) : 0;
  };
  const int our_code = code_of(ours.back());
  const int beasts_code = code_of(beasts.back());
  return (our_code == 1014 && beasts.back() == "error 1002") || (beasts_code >= 5000 && ours.back() == "error 1002");
}

TEST(WsBeastOracle, tells_the_same_of_random_streams_cut_anywhere) {
  Random random(6455);
  StreamMaker maker(random);
  int messages = 0;
  int errors = 0;
  int closes = 0;
  for (int round = 0; round < 2700; ++round) {
    const std::string bytes = maker.make();
    const Story ours = told_by_us(bytes, random);
    const Story beasts = told_by_beast(bytes, random);
    if (differs_on_purpose(ours, beasts)) continue;
    ASSERT_EQ(ours, beasts) << "round " << round;
    for (const std::string& line : ours) {
      messages += line.starts_with("text ") || line.starts_with("binary ") ? 1 : 0;
      errors += line.starts_with("error ") ? 1 : 0;
      closes += line.starts_with("close ") ? 1 : 0;
    }
  }
  // The comparison is worth something only where all of it came up.
  EXPECT_GT(messages, 3000);
  EXPECT_GT(errors, 300);
  EXPECT_GT(closes, 30);
}

}  // namespace
}  // namespace holdfast::ws
