#include "ws/frame.hpp"

#include <algorithm>
#include <cstring>

#include "holdfast/assert.hpp"

namespace holdfast::ws {
namespace {

constexpr std::size_t control_bytes_max = 125;

bool is_control(Opcode opcode) {
  return (static_cast<unsigned>(opcode) & 8U) != 0;
}

bool is_known(unsigned opcode) {
  return opcode <= 2 || (opcode >= 8 && opcode <= 10);
}

std::uint64_t big_endian(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8U | bytes[i];
  return value;
}

/// Bytes of the head, from its second byte on, where the frame is not masked.
std::size_t head_bytes(std::uint8_t second) {
  const unsigned length = second & 0x7FU;
  return length == 126 ? 4 : length == 127 ? 10 : 2;
}

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

}  // namespace

bool may_be_sent(std::uint16_t code) {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

FrameReader::Pieces& FrameReader::pieces() {
  if (!pieces_) pieces_ = std::make_unique<Pieces>();
  return *pieces_;
}

Found FrameReader::broken(std::uint16_t code, std::string_view why) {
  done_ = true;
  pieces_.reset();
  return {Found::Kind::error, false, code, why};
}

Found FrameReader::next(std::string_view& input, Assembled& assembled) {
  bool more = true;  // go on: nothing to tell yet
  while (more) {
    if (done_) {
      input = {};
      return {};
    }
    const Found found = in_frame_ ? take_payload(input, assembled, more) : take_head(input, more);
    if (!more) return found;
  }
  return {};
}

const char* FrameReader::wrong_with_first(std::uint8_t first) const {
  if ((first & 0x70U) != 0) return "a reserved bit is set and no extension was agreed on";
  const unsigned code = first & 0x0FU;
  if (!is_known(code)) return "the frame has a reserved opcode";
  const auto opcode = static_cast<Opcode>(code);
  const bool final = (first & 0x80U) != 0;
  if (is_control(opcode)) return final ? nullptr : "a control frame is fragmented";
  const bool under_way = message_ != Opcode::continuation;
  if (opcode == Opcode::continuation && !under_way) return "a continuation frame continues nothing";
  if (opcode != Opcode::continuation && under_way) return "a new message begins inside a fragmented one";
  return nullptr;
}

const char* FrameReader::wrong_with_second(std::uint8_t first, std::uint8_t second) {
  if ((second & 0x80U) != 0) return "a frame from the server is masked";
  if (is_control(static_cast<Opcode>(first & 0x0FU)) && second > control_bytes_max) {
    return "a control frame is longer than 125 bytes";
  }
  return nullptr;
}

/// With a whole head whose first two bytes are in order.
Found FrameReader::start_frame(const std::uint8_t* head) {
  std::uint64_t length = head[1];
  if (length == 126) {
    length = big_endian(head + 2, 2);
    if (length < 126) return broken(protocol_error, "a length is not in its shortest form");
  } else if (length == 127) {
    length = big_endian(head + 2, 8);
    if (length >> 63U != 0) return broken(protocol_error, "a length has its top bit set");
    if (length <= 0xFFFF) return broken(protocol_error, "a length is not in its shortest form");
  }
  opcode_ = static_cast<Opcode>(head[0] & 0x0FU);
  final_ = (head[0] & 0x80U) != 0;
  if (!is_control(opcode_)) {
    const std::size_t before = pieces_ ? pieces_->message.size() : 0;
    if (length > message_bytes_max_ - before) return broken(too_big, "a message is longer than the limit");
    if (opcode_ != Opcode::continuation) {
      message_ = opcode_;
      utf8_.reset();
    }
  }
  left_ = length;
  in_frame_ = true;
  return {};
}

Found FrameReader::take_head(std::string_view& input, bool& more) {
  // The usual case first: the whole head lies in the input.
  if (head_size_ == 0 && input.size() >= head_.size()) {
    const std::uint8_t* head = bytes_of(input);
    const char* why = wrong_with_first(head[0]);
    if (why == nullptr) why = wrong_with_second(head[0], head[1]);
    const Found found = why != nullptr ? broken(protocol_error, why) : start_frame(head);
    more = !done_;
    input.remove_prefix(head_bytes(head[1]));
    return found;
  }
  // Else byte by byte, so that a fault is told by the same byte wherever the stream was cut.
  while (!input.empty()) {
    head_[head_size_++] = static_cast<std::uint8_t>(input.front());
    input.remove_prefix(1);
    const char* why = nullptr;
    if (head_size_ == 1) why = wrong_with_first(head_[0]);
    if (head_size_ == 2) why = wrong_with_second(head_[0], head_[1]);
    const bool whole = head_size_ >= 2 && head_size_ == head_bytes(head_[1]);
    if (why == nullptr && !whole) continue;
    head_size_ = 0;
    const Found found = why != nullptr ? broken(protocol_error, why) : start_frame(head_.data());
    more = !done_;
    return found;
  }
  more = false;
  return {};
}

Found FrameReader::take_payload(std::string_view& input, Assembled& assembled, bool& more) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
  const std::string_view payload = input.substr(0, size);
  const bool whole = size == left_;
  const bool control = is_control(opcode_);
  input.remove_prefix(size);
  left_ -= size;
  in_frame_ = !whole;
  more = false;

  if (control) {
    const bool pieced = pieces_ && !pieces_->control.empty();
    if (whole && !pieced) return finish_control(payload);
    pieces().control.append(payload);
    if (!whole) return {};
    assembled.push_back(std::move(pieces_->control));
    pieces_->control.clear();
    if (message_ == Opcode::continuation) pieces_.reset();
    return finish_control(assembled.back());
  }

  const bool text = message_ == Opcode::text;
  if (whole && final_ && opcode_ != Opcode::continuation && !(pieces_ && !pieces_->message.empty())) {
    // One frame, all of it here: handed out where it lies.
    if (text && !valid_utf8(payload)) return broken(not_utf8, "a text message is not UTF-8");
    message_ = Opcode::continuation;
    return {Found::Kind::message, !text, 0, payload};
  }
  const bool ends = whole && final_;
  if (text && (!utf8_.feed(payload) || (ends && !utf8_.complete()))) {
    return broken(not_utf8, "a text message is not UTF-8");
  }
  if (!payload.empty()) pieces().message.append(payload);
  if (!ends) {
    more = whole;
    return {};
  }
  message_ = Opcode::continuation;
  assembled.emplace_back();
  if (pieces_) assembled.back() = std::move(pieces_->message);
  pieces_.reset();
  return {Found::Kind::message, !text, 0, assembled.back()};
}

Found FrameReader::finish_control(std::string_view payload) {
  if (opcode_ == Opcode::close) return finish_close(payload);
  return {opcode_ == Opcode::ping ? Found::Kind::ping : Found::Kind::pong, false, 0, payload};
}

Found FrameReader::finish_close(std::string_view payload) {
  if (payload.size() == 1) return broken(protocol_error, "a close frame has half a code");
  std::uint16_t code = no_code;
  std::string_view reason;
  if (payload.size() >= 2) {
    code = static_cast<std::uint16_t>(big_endian(bytes_of(payload), 2));
    reason = payload.substr(2);
    if (!may_be_sent(code)) return broken(protocol_error, "a close frame has a code that may not be sent");
    if (!valid_utf8(reason)) return broken(not_utf8, "the reason in a close frame is not UTF-8");
  }
  done_ = true;
  pieces_.reset();
  return {Found::Kind::close, false, code, reason};
}

void append_frame(std::string& out, Opcode opcode, std::string_view payload, Mask mask) {
  HOLDFAST_ASSERT(!is_control(opcode) || payload.size() <= control_bytes_max, "a control frame is short");
  out += static_cast<char>(0x80U | static_cast<unsigned>(opcode));
  const std::uint64_t length = payload.size();
  const std::size_t length_bytes = length <= 125 ? 0 : length <= 0xFFFF ? 2 : 8;
  out += static_cast<char>(0x80U | (length_bytes == 0 ? length : length_bytes == 2 ? 126U : 127U));
  for (std::size_t i = length_bytes; i > 0; --i) out += static_cast<char>(length >> (8 * (i - 1)) & 0xFFU);
  out.append(reinterpret_cast<const char*>(mask.data()), mask.size());

  const std::size_t start = out.size();
  out.append(payload);
  char* at = out.data() + start;
  std::uint64_t word_mask = 0;
  std::memcpy(&word_mask, mask.data(), 4);
  std::memcpy(reinterpret_cast<char*>(&word_mask) + 4, mask.data(), 4);
  std::size_t i = 0;
  for (; i + 8 <= payload.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at + i, 8);
    word ^= word_mask;
    std::memcpy(at + i, &word, 8);
  }
  for (; i < payload.size(); ++i) {
    at[i] = static_cast<char>(static_cast<unsigned char>(at[i]) ^ mask[i % 4]);
  }
}

void append_close(std::string& out, std::uint16_t code, std::string_view reason, Mask mask) {
  std::string payload;
  if (code != no_code) {
    payload += static_cast<char>(code >> 8U);
    payload += static_cast<char>(code & 0xFFU);
    std::size_t size = std::min(reason.size(), control_bytes_max - 2);
    while (size > 0 && size < reason.size() && (static_cast<unsigned char>(reason[size]) & 0xC0U) == 0x80U) --size;
    payload.append(reason.substr(0, size));
  }
  append_frame(out, Opcode::close, payload, mask);
}

}  // namespace holdfast::ws
