// The reader of the upgrade's answer: nothing that a server says may crash it, and an answer is the same wherever it
// is cut.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/check.hpp"
#include "ws/handshake.hpp"
#include "ws/utf8.hpp"

namespace {

using holdfast::WallTime;
using holdfast::fuzz::check;
using holdfast::ws::ResponseReader;

constexpr std::string_view key = "dGhlIHNhbXBsZSBub25jZQ==";

ResponseReader fresh() {
  return ResponseReader(key, {"v1", "v2"}, 2048, WallTime(std::chrono::milliseconds(784111777000)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::size_t piece_bytes = 1 + data[0] % 64U;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);

  // Pieces first: what is behind a settled answer in the same piece must not change it.
  ResponseReader pieces = fresh();
  std::size_t fed = 0;
  while (fed < stream.size() && pieces.state() == ResponseReader::State::more) {
    const std::string_view piece = stream.substr(fed, piece_bytes);
    pieces.feed(piece);
    fed += piece.size();
  }
  ResponseReader whole = fresh();
  whole.feed(stream.substr(0, fed));
  check(whole.state() == pieces.state());
  whole.finish();
  pieces.finish();
  check(whole.state() == pieces.state());
  check(whole.state() != ResponseReader::State::more);
  check(whole.status() == pieces.status());
  check(whole.body() == pieces.body());
  check(whole.body().size() <= 512);
  check(holdfast::ws::valid_utf8(whole.body()));
  check(whole.state() != ResponseReader::State::open || whole.rest() == pieces.rest());
  check(whole.retry_after() == pieces.retry_after());
  return 0;
}
