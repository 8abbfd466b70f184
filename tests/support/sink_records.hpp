#pragma once
#include <simdjson.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "holdfast/sink.hpp"

namespace holdfast::test {

/// One line of an NDJSON sink, as an independent JSON parser reads it.
struct Line {
  std::string conn;
  std::int64_t epoch = 0;
  std::int64_t seq = 0;
  std::int64_t gap_to = 0;
  std::int64_t at_ms = 0;
  std::string data;
  std::string data_b64;
  bool is_gap = false;
  bool seq_is_null = false;
};

/// Throws simdjson_error where the text is no JSON of that shape.
inline Line parse_line(std::string_view text) {
  simdjson::dom::parser parser;
  const simdjson::dom::element document = parser.parse(simdjson::padded_string(text));
  Line line;
  line.conn = std::string_view(document["conn"]);
  line.epoch = document["epoch"];
  line.at_ms = document["at_ms"];
  simdjson::dom::element field;
  if (document["gap"].get(field) == simdjson::SUCCESS) {
    line.is_gap = true;
    line.seq = field.at(0);
    line.gap_to = field.at(1);
    return line;
  }
  line.seq_is_null = document["seq"].is_null();
  if (!line.seq_is_null) line.seq = document["seq"];
  if (document["data"].get(field) == simdjson::SUCCESS) line.data = std::string_view(field);
  if (document["data_b64"].get(field) == simdjson::SUCCESS) line.data_b64 = std::string_view(field);
  return line;
}

/// Every whole line; what comes after the last line break is left out.
inline std::vector<Line> parse_lines(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.push_back(parse_line(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  return lines;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Record text_record(std::string_view connection, std::int64_t seq, std::string_view data,
                          const std::shared_ptr<LeaseGuard>* guard = nullptr) {
  Record record;
  record.connection = connection;
  record.epoch = guard != nullptr ? (*guard)->epoch() : Epoch{1};
  record.seq = seq;
  record.at = WallTime(std::chrono::milliseconds(1'700'000'000'000));
  record.data = data;
  record.guard = guard;
  return record;
}

}  // namespace holdfast::test
