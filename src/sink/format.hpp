#pragma once
#include <string>
#include <string_view>

#include "holdfast/sink.hpp"
#include "sink/bytes.hpp"

namespace holdfast::sink {

/// Writes records as lines of JSON (docs in README.md). Keeps the part that is the same for all records of one
/// connection in one epoch, so one formatter serves one stretch of records at a time. Not thread-safe.
///
/// Text is written byte for byte but for what JSON must escape; that it is UTF-8 is the sender's business.
class Formatter {
 public:
  void append(const Record& record, Bytes& out);

 private:
  void begin_connection(const Record& record);

  std::string connection_;
  Epoch epoch_{-1};
  std::string head_;  // {"conn":"…","epoch":N,
};

/// The text as it stands between the quotes of a JSON string, appended.
void append_escaped(std::string_view text, Bytes& out);
/// RFC 4648, with padding, appended.
void append_base64(std::string_view data, Bytes& out);

}  // namespace holdfast::sink
