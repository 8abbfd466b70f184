// The parser of frames must not read outside its input, and must find the same things wherever the stream is cut.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/check.hpp"
#include "ws/frame.hpp"

namespace {

using holdfast::fuzz::check;
using holdfast::ws::Assembled;
using holdfast::ws::Found;
using holdfast::ws::FrameReader;

struct Event {
  Found::Kind kind;
  bool binary;
  std::uint16_t code;
  std::string data;
  bool operator==(const Event&) const = default;
};

void feed(FrameReader& reader, std::string_view bytes, std::vector<Event>& events) {
  // Of exactly this size, so that the sanitizer sees a read behind it.
  const std::vector<char> copy(bytes.begin(), bytes.end());
  std::string_view input(copy.data(), copy.size());
  Assembled assembled;
  for (;;) {
    const Found found = reader.next(input, assembled);
    if (found.kind == Found::Kind::nothing) return;
    events.push_back({found.kind, found.binary, found.code, std::string(found.data)});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  // The first two bytes choose the limit and the pieces; the rest is the stream.
  const std::size_t limit = std::size_t{1} << (data[0] % 18U);
  const std::size_t piece_bytes = 1 + data[1] % 40U;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);

  std::vector<Event> whole;
  FrameReader whole_reader(limit);
  feed(whole_reader, stream, whole);

  std::vector<Event> pieces;
  FrameReader piece_reader(limit);
  for (std::size_t at = 0; at < stream.size(); at += piece_bytes) {
    feed(piece_reader, stream.substr(at, piece_bytes), pieces);
  }
  check(whole == pieces);
  check(whole_reader.between_messages() == piece_reader.between_messages());

  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Event& event = whole[i];
    check(event.data.size() <= limit || event.kind != Found::Kind::message);
    const bool last = event.kind == Found::Kind::close || event.kind == Found::Kind::error;
    check(!last || i + 1 == whole.size());
  }
  return 0;
}
