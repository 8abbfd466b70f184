// Numbers pulled out of messages: the message is the upstream's, the pointer the operator's. What is found is what
// a parser of the whole document finds at that place.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/check.hpp"
#include "store/json.hpp"
#include "worker/sequence.hpp"

namespace {

using holdfast::fuzz::check;

// The number at /seq of a document, by the parser that reads it all.
std::optional<std::int64_t> whole(const holdfast::Attributes& document) {
  const auto found = document.find("seq");
  if (found == document.end()) return std::nullopt;
  if (const auto* number = found->second.as_int()) return *number >= 0 ? std::optional(*number) : std::nullopt;
  return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view message = holdfast::fuzz::as_text(data, size);
  static holdfast::worker::SeqReader reader;
  static const holdfast::worker::SeqPointer flat("/seq"), deep("/a/0/b"), odd("/~0/~1/");
  const auto seq = reader.read(message, flat);
  for (const auto* pointer : {&flat, &deep, &odd}) {
    const auto found = reader.read(message, *pointer);
    check(!found || *found >= 0);
  }
  check(reader.read(message, flat) == seq);
  const auto document = holdfast::store::attributes_from_json(message);
  // Of equal keys the readers may take different ones; a text of digits is for the other tests.
  const std::size_t first = message.find("\"seq\"");
  if (document && first != std::string_view::npos && message.find("\"seq\"", first + 1) == std::string_view::npos &&
      message.find('\\') == std::string_view::npos) {
    const auto expected = whole(*document);
    if (expected) check(seq == expected);
  }
  return 0;
}
