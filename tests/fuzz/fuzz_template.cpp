// Resume templates: what parses can be rendered for any number and id, and no id gets out of the string that it is
// in.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "fuzz/check.hpp"
#include "store/json.hpp"
#include "worker/resume_template.hpp"
#include "ws/utf8.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using holdfast::fuzz::check;
  using holdfast::worker::ResumeTemplate;
  const std::string_view text = holdfast::fuzz::as_text(data, size);
  const auto parsed = ResumeTemplate::parse(text);
  if (parsed) {
    for (const std::int64_t seq : {std::int64_t{0}, std::int64_t{7}, std::numeric_limits<std::int64_t>::max()}) {
      const std::string rendered = parsed->render(seq, "id");
      check(rendered == parsed->render(seq, "id"));
    }
  } else {
    check(parsed.error().code == holdfast::Code::usage && !parsed.error().detail.empty());
  }

  // Any id is one JSON string, and the same one.
  const auto frame = ResumeTemplate::parse(R"({{"id":"{id}","from":{next_seq}}})");
  check(frame.has_value());
  const auto value = holdfast::store::attributes_from_json(frame->render(41, text));
  if (!value) {
    check(!holdfast::ws::valid_utf8(text));  // no JSON can carry it, and no row either
    return 0;
  }
  check(value->size() == 2);
  check(value->at("id") == holdfast::Value(std::string(text)));
  check(value->at("from") == holdfast::Value(std::int64_t{42}));
  return 0;
}
