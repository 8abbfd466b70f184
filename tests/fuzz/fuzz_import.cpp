// Lines of an import file: each gives a connection that a worker can run, or one sentence; and values that nest or
// grow without end are refused, not followed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/connections.hpp"
#include "fuzz/check.hpp"
#include "store/json.hpp"
#include "worker/stream_options.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using holdfast::fuzz::check;
  const std::string_view text = holdfast::fuzz::as_text(data, size);
  const auto line = holdfast::cli::parse_import_line(text);
  if (line) {
    check(holdfast::cli::check_id(line->id).has_value());
    holdfast::Row row{holdfast::cli::key_of(line->id), line->stream};
    check(holdfast::cli::id_of(row) == line->id);
    check(holdfast::worker::StreamOptions::from_row(row).has_value());
  } else {
    check(line.error().code == holdfast::Code::usage && !line.error().detail.empty());
  }

  // What one writes, the other reads.
  const auto value = holdfast::store::value_from_json(text);
  if (value) {
    const std::string written = holdfast::store::to_json(*value);
    const auto again = holdfast::store::value_from_json(written);
    check(again.has_value() && holdfast::store::to_json(*again) == written);
  }
  return 0;
}
