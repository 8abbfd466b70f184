#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "ws/utf8.hpp"

namespace holdfast::ws {

/// RFC 6455 section 5.2.
enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

/// RFC 6455 section 7.4.1, as far as this side says them.
enum CloseCode : std::uint16_t {
  normal_closure = 1000,
  going_away = 1001,
  protocol_error = 1002,
  no_code = 1005,   ///< never on the wire: the close frame had none
  abnormal = 1006,  ///< never on the wire: there was no close frame
  not_utf8 = 1007,
  too_big = 1009,
};

/// Whether an endpoint may send this code in a close frame (RFC 6455 section 7.4 and the IANA registry).
[[nodiscard]] bool may_be_sent(std::uint16_t code);

/// What FrameReader found.
struct Found {
  enum class Kind : std::uint8_t {
    nothing,  ///< the input is used up
    message,  ///< `binary`, `data`; UTF-8 checked where it is text
    ping,     ///< `data`
    pong,     ///< `data`
    close,    ///< `code` (1005: none was given), `data` is the reason; nothing comes after it
    error,    ///< `code` is what to close with, `data` says what was wrong; nothing comes after it
  };
  Kind kind = Kind::nothing;
  bool binary = false;
  std::uint16_t code = 0;
  std::string_view data;
};

/// Messages that had to be put together from pieces: their views point here. Whoever calls next() clears it
/// when it is done with the views.
using Assembled = std::deque<std::string>;

/// Takes what a server sends (RFC 6455 section 5) out of a stream of bytes that is cut anywhere. Messages that
/// lie in the input whole and in one frame are handed out where they lie; only the others are copied, into a
/// buffer that exists as long as such a message is under way. So an idle reader owns no memory.
///
/// Pure: no I/O. Limits hold for the whole message, all its fragments together.
class FrameReader {
 public:
  explicit FrameReader(std::size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  /// Takes the next thing off the front of the input. `Found::data` points into the input or into
  /// `assembled`. To be called until it gives `nothing`, `close` or `error`.
  Found next(std::string_view& input, Assembled& assembled);

  /// Whether bytes of an unfinished frame or message are being kept.
  [[nodiscard]] bool between_messages() const {
    return !in_frame_ && head_size_ == 0 && message_ == Opcode::continuation;
  }

 private:
  struct Pieces {
    std::string message;
    std::string control;
  };

  Found take_head(std::string_view& input, bool& more);
  [[nodiscard]] const char* wrong_with_first(std::uint8_t first) const;
  [[nodiscard]] static const char* wrong_with_second(std::uint8_t first, std::uint8_t second);
  Found start_frame(const std::uint8_t* head);
  Found take_payload(std::string_view& input, Assembled& assembled, bool& more);
  Found finish_control(std::string_view payload);
  Found finish_close(std::string_view payload);
  Found broken(std::uint16_t code, std::string_view why);
  Pieces& pieces();

  std::unique_ptr<Pieces> pieces_;
  std::size_t message_bytes_max_;
  std::uint64_t left_ = 0;  // payload bytes of the current frame still to come
  std::array<std::uint8_t, 10> head_{};
  std::uint8_t head_size_ = 0;
  bool in_frame_ = false;
  bool final_ = false;
  bool done_ = false;
  Opcode opcode_ = Opcode::continuation;   // of the current frame
  Opcode message_ = Opcode::continuation;  // of the message under way; continuation: none
  Utf8Checker utf8_;
};

/// A masking key (RFC 6455 section 5.3): unpredictable, new for each frame.
using Mask = std::array<std::uint8_t, 4>;

/// Appends one whole frame as a client sends it, masked.
void append_frame(std::string& out, Opcode opcode, std::string_view payload, Mask mask);
/// The same for a close frame. 1005: without a code. The reason is cut to 123 bytes at a character's end.
void append_close(std::string& out, std::uint16_t code, std::string_view reason, Mask mask);

}  // namespace holdfast::ws
