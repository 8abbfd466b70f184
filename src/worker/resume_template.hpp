#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"

namespace holdfast::worker {

/// The text that asks an upstream to go on after a number: `{last_seq}`, `{next_seq}` and `{id}` are filled in,
/// a literal brace is doubled, as in `{{"op":"resume","from":{next_seq}}}`.
class ResumeTemplate {
 public:
  /// Code::usage for an unknown placeholder or a lone brace.
  [[nodiscard]] static Result<ResumeTemplate> parse(std::string_view text);

  /// Where nothing was received yet (last_seq 0), both numbers are 0: from the start, wherever numbering starts.
  /// The id is escaped as inside a JSON string.
  [[nodiscard]] std::string render(std::int64_t last_seq, std::string_view id) const;

 private:
  enum class Kind { text, last_seq, next_seq, id };
  struct Piece {
    Kind kind = Kind::text;
    std::string text;
  };
  std::vector<Piece> pieces_;
};

}  // namespace holdfast::worker
