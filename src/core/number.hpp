#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/row.hpp"

namespace holdfast {

enum class Fraction { refused, rounded_up };

/// The whole number that another program meant, where it wrote it as a float (JavaScript, Python) or as a text of
/// digits: 100, 100.0 and "100" are one. Nothing where it is no number, or a float that is too large to be exact.
[[nodiscard]] std::optional<std::int64_t> whole_number(const Value& value, Fraction fraction = Fraction::refused);

/// Null is no value, as in the rows of programs that write null where we write nothing.
[[nodiscard]] bool is_absent(const Value* value);

/// "a text: abc", "a fraction: 1.5": for people.
[[nodiscard]] std::string describe(const Value& value);

/// S9: how far a connection is; 0 where it has not begun. Nothing where the row holds something that is no such
/// number: then nobody may go on from 0, and what is there must not be overwritten.
[[nodiscard]] std::optional<std::int64_t> last_seq_of(const Row& row);

}  // namespace holdfast
