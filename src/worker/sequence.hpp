#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::worker {

/// A JSON pointer (RFC 6901), taken apart once. The text was checked by StreamOptions.
class SeqPointer {
 public:
  struct Step {
    std::string name;                  // unescaped
    std::optional<std::size_t> index;  // where it can be one of an array's
  };
  explicit SeqPointer(std::string_view text);
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

/// Pulls sequence numbers out of JSON messages: a whole number from 0 to 2^63-1, written as a number or as a
/// string of digits. Keeps its memory from message to message (about six times the largest message so far), so
/// there is one per loop, shared by its streams. Not thread-safe.
class SeqReader {
 public:
  SeqReader();
  ~SeqReader();
  SeqReader(const SeqReader&) = delete;
  SeqReader& operator=(const SeqReader&) = delete;

  /// Nothing where the message is no JSON, or has no such number at that place. Of the rest of the message no
  /// more is looked at than is needed to find it.
  [[nodiscard]] std::optional<std::int64_t> read(std::string_view message, const SeqPointer& pointer);

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

/// What numbers have come, and what a new one means. Pure.
///
/// A number at or below the last one is a repeat. The first of all begins the sequence wherever it is; after it,
/// a number more than one higher leaves a hole.
class Sequence {
 public:
  struct Seen {
    bool repeat = false;
    bool went_back = false;      // below the one before it on this connection
    std::int64_t hole_from = 0;  // hole_from <= hole_to: that range is missing before this one
    std::int64_t hole_to = -1;
    [[nodiscard]] bool hole() const { return hole_from <= hole_to; }
  };

  /// From a row: 0 or less means that nothing was received yet.
  explicit Sequence(std::int64_t last_seq = 0) {
    if (last_seq > 0) last_ = last_seq;
  }
  void connection_began() { last_on_connection_.reset(); }
  [[nodiscard]] Seen see(std::int64_t seq);
  /// For a stream that numbers its messages itself. Nothing where the numbers are used up: there is none above
  /// 2^63-1, and one that begins anew would make repeats of what never came before.
  [[nodiscard]] std::optional<std::int64_t> next() {
    if (last() == INT64_MAX) return std::nullopt;
    return last_ = last() + 1;
  }

  [[nodiscard]] std::int64_t last() const { return last_.value_or(0); }  ///< 0: none yet

 private:
  std::optional<std::int64_t> last_;
  std::optional<std::int64_t> last_on_connection_;
};

}  // namespace holdfast::worker
