#include "ws/handshake.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <new>

#include "holdfast/assert.hpp"
#include "ws/http_text.hpp"

namespace holdfast::ws {
namespace {

constexpr std::size_t body_bytes_max = 512;
constexpr std::size_t raw_body_bytes_max = 2048;  // with the framing of chunks
constexpr std::string_view accept_suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

std::string base64(const unsigned char* bytes, std::size_t size) {
  std::string text(4 * ((size + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes, static_cast<int>(size));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

bool set_by_handshake(std::string_view name) {
  constexpr std::array<std::string_view, 7> names = {
      "host", "upgrade", "connection", "content-length", "transfer-encoding", "te", "trailer"};
  const std::string lower = http::lower(name);
  return lower.starts_with("sec-websocket-") || std::find(names.begin(), names.end(), lower) != names.end();
}

/// Whether a value can stand in a header without ending it (RFC 9110 section 5.5).
bool is_header_value(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7F);
  });
}

}  // namespace

std::string make_key(const std::array<std::uint8_t, 16>& random) {
  return base64(random.data(), random.size());
}

std::string accept_for(std::string_view key) {
  const std::string text = std::string(key) + std::string(accept_suffix);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const int done = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  if (done != 1) throw std::bad_alloc();
  HOLDFAST_ASSERT(size == 20, "SHA-1 is 20 bytes long");
  return base64(digest.data(), size);
}

Result<std::string> make_request(const Url& url, const Headers& headers, const std::vector<std::string>& subprotocols,
                                 std::string_view key) {
  const auto visible = [](char c) { return c > 0x20 && c < 0x7F; };
  if (url.target.empty() || url.target.front() != '/' ||
      !std::all_of(url.target.begin(), url.target.end(), visible)) {
    return fail(Code::usage, "the path of the URL has characters that cannot stand in a request");
  }
  if (url.host.empty() || !std::all_of(url.host.begin(), url.host.end(), visible)) {
    return fail(Code::usage, "the host of the URL has characters that cannot stand in a request");
  }
  std::string request = "GET " + url.target + " HTTP/1.1\r\nHost: " + url.authority() +
                        "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: " +
                        std::string(key) + "\r\n";
  std::string list;
  for (auto subprotocol = subprotocols.begin(); subprotocol != subprotocols.end(); ++subprotocol) {
    if (!http::is_token(*subprotocol)) {
      return fail(Code::usage, "'" + http::harmless(*subprotocol, 64) + "' cannot be a subprotocol's name");
    }
    if (std::find(subprotocols.begin(), subprotocol, *subprotocol) != subprotocol) {
      return fail(Code::usage, "the subprotocol " + *subprotocol + " is asked for twice");
    }
    list += (list.empty() ? "" : ", ") + *subprotocol;
  }
  if (!list.empty()) request += "Sec-WebSocket-Protocol: " + list + "\r\n";
  for (const auto& [name, value] : headers) {
    if (!http::is_token(name)) {
      return fail(Code::usage, "'" + http::harmless(name, 64) + "' cannot be a header's name");
    }
    if (set_by_handshake(name)) return fail(Code::usage, "the header " + name + " is set by the handshake itself");
    if (!is_header_value(value)) {
      return fail(Code::usage, "the value of the header " + name + " has a line break or another control character");
    }
    request.append(name).append(": ").append(http::trim(value)).append("\r\n");
  }
  request += "\r\n";
  return request;
}

ResponseReader::ResponseReader(std::string_view key, std::vector<std::string> subprotocols,
                               std::size_t header_bytes_max, WallTime now)
    : accept_(accept_for(key)),
      subprotocols_(std::move(subprotocols)),
      header_bytes_max_(header_bytes_max),
      now_(now) {}

ResponseReader::State ResponseReader::broken(std::string why) {
  why_ = std::move(why);
  return state_ = State::broken;
}

ResponseReader::State ResponseReader::feed(std::string_view bytes) {
  if (state_ != State::more) return state_;
  const std::size_t seen = buffer_.size();
  buffer_.append(bytes);
  if (head_bytes_ == 0) {
    const std::size_t end = buffer_.find("\r\n\r\n", seen < 3 ? 0 : seen - 3);
    if (std::min(end, buffer_.size()) > header_bytes_max_) {
      return broken("the header of the answer is longer than " + std::to_string(header_bytes_max_) + " bytes");
    }
    if (end == std::string::npos) {
      // Something that is not HTTP at all is told at once, not at the time limit.
      const std::string_view start = std::string_view(buffer_).substr(0, 5);
      if (start != std::string_view("HTTP/").substr(0, start.size())) return broken("the answer is not HTTP");
      return state_;
    }
    head_bytes_ = end + 4;
    if (read_head(std::string_view(buffer_).substr(0, end)) != State::more) return state_;
    if (judge() != State::more) return state_;
  }
  return read_body(false);
}

ResponseReader::State ResponseReader::finish() {
  if (state_ != State::more) return state_;
  if (head_bytes_ == 0) {
    return broken(buffer_.empty() ? "the connection ended without an answer to the upgrade"
                                  : "the connection ended inside the header of the answer");
  }
  return read_body(true);
}

ResponseReader::State ResponseReader::read_head(std::string_view head) {
  bool first = true;
  while (!head.empty()) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 2);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
      return broken("the header of the answer has a stray line break or a NUL in it");
    }
    if (!(first ? read_status_line(line) : read_header(line))) return state_;
    first = false;
  }
  return first ? broken("the answer is not HTTP") : state_;
}

bool ResponseReader::read_status_line(std::string_view line) {
  // HTTP/1.1 101 Switching Protocols
  const bool shaped = line.size() >= 12 && line.starts_with("HTTP/1.") && (line[7] == '0' || line[7] == '1') &&
                      line[8] == ' ' && (line.size() == 12 || line[12] == ' ');
  int status = 0;
  if (shaped) std::from_chars(line.data() + 9, line.data() + 12, status);
  if (!shaped || status < 100 || status > 599 ||
      !std::all_of(line.begin() + 9, line.begin() + 12, [](char c) { return c >= '0' && c <= '9'; })) {
    broken("the answer does not begin with a status line of HTTP/1.1: '" + http::harmless(line, 80) + "'");
    return false;
  }
  if (status == 101 && line[7] != '1') {
    broken("the upgrade was answered in HTTP/1.0");
    return false;
  }
  status_ = status;
  return true;
}

bool ResponseReader::read_header(std::string_view line) {
  if (line.starts_with(' ') || line.starts_with('\t')) {
    broken("the answer has a header that is folded over two lines");
    return false;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !http::is_token(line.substr(0, colon))) {
    broken("the answer has a line that is not a header: '" + http::harmless(line, 80) + "'");
    return false;
  }
  const std::string name = http::lower(line.substr(0, colon));
  const std::string_view value = http::trim(line.substr(colon + 1));
  if (!is_header_value(value)) {
    broken("the header " + name + " of the answer has a control character in it");
    return false;
  }
  if (name == "retry-after") retry_after_ = parse_retry_after(value, now_);
  if (name == "transfer-encoding") chunked_ = http::has_token(value, "chunked");
  if (name == "content-length") {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error == std::errc() && end == value.data() + value.size()) content_length_ = length;
  }
  return read_upgrade_header(name, value);
}

bool ResponseReader::read_upgrade_header(const std::string& name, std::string_view value) {
  if (name == "upgrade") has_upgrade_ = http::lower(value) == "websocket";
  if (name == "connection") has_connection_ = has_connection_ || http::has_token(value, "upgrade");
  if (name == "sec-websocket-accept") {
    ++accepts_;
    accept_matches_ = value == accept_;
  }
  if (name == "sec-websocket-protocol") {
    ++subprotocol_headers_;
    subprotocol_ = value;
  }
  if (name == "sec-websocket-extensions" && !value.empty()) extensions_ = value;
  return true;
}

/// RFC 6455 section 4.1, the six things that a client checks, in their order.
ResponseReader::State ResponseReader::judge() {
  if (status_ != 101) return state_;
  if (!has_upgrade_) return broken("the answer has no 'Upgrade: websocket'");
  if (!has_connection_) return broken("the answer has no 'Connection: Upgrade'");
  if (accepts_ == 0) return broken("the answer has no Sec-WebSocket-Accept");
  if (accepts_ > 1 || !accept_matches_) {
    return broken("the Sec-WebSocket-Accept of the answer does not belong to our key (a cache in between?)");
  }
  if (!extensions_.empty()) {
    return broken("the server chose an extension that was not asked for: '" + http::harmless(extensions_, 80) + "'");
  }
  if (subprotocol_headers_ > 1) return broken("the server chose more than one subprotocol");
  if (subprotocol_headers_ == 1 &&
      std::find(subprotocols_.begin(), subprotocols_.end(), subprotocol_) == subprotocols_.end()) {
    return broken("the server chose a subprotocol that was not asked for: '" + http::harmless(subprotocol_, 80) +
                  "'");
  }
  return state_ = State::open;
}

ResponseReader::State ResponseReader::read_body(bool ended) {
  const std::string_view raw = rest().substr(0, raw_body_bytes_max);
  std::string body;
  bool whole = status_ < 200 || status_ == 204 || status_ == 304;
  if (chunked_) {
    whole = http::unchunk(raw, body) || whole;
  } else {
    const std::size_t length = content_length_.value_or(std::string_view::npos);
    body = raw.substr(0, length);
    whole = whole || raw.size() >= length;
  }
  if (!whole && !ended && body.size() < body_bytes_max && raw.size() < raw_body_bytes_max) return state_;
  body_ = http::harmless(body, body_bytes_max);
  return state_ = State::refused;
}

}  // namespace holdfast::ws
