// The options of a connection's row, as anybody may have written them into the table: each is understood or refused
// in one sentence, and what was understood is written back as the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/check.hpp"
#include "store/json.hpp"
#include "worker/sequence.hpp"
#include "worker/stream_options.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using holdfast::fuzz::check;
  using holdfast::worker::StreamOptions;
  auto attributes = holdfast::store::attributes_from_json(holdfast::fuzz::as_text(data, size));
  if (!attributes) return 0;
  holdfast::Row row{"CONN#x", *std::move(attributes)};
  row.attributes.try_emplace(std::string(holdfast::attribute::url), holdfast::Value("ws://localhost/"));
  const auto options = StreamOptions::from_row(row);
  if (!options) {
    check(options.error().code == holdfast::Code::usage && !options.error().detail.empty());
    check(options.error().detail.find('\n') == std::string::npos);
    return 0;
  }
  check(options->check().has_value());
  const auto again = StreamOptions::from_row({"CONN#x", options->to_row()});
  check(again.has_value() && *again == *options);
  // The pointer was accepted, so it can be followed.
  holdfast::worker::SeqReader reader;
  (void)reader.read(R"({"seq":1,"a":[{"b":"2"}]})", holdfast::worker::SeqPointer(options->seq_pointer));
  return 0;
}
