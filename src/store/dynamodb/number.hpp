#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/row.hpp"
#include "store/dynamodb/names.hpp"

namespace holdfast::store::dynamodb {

// DynamoDB has one type of number: decimal, 38 digits, written as text.

/// A whole number of 64 bits, or else a double where that says the same digits; otherwise Value::Unreadable with the
/// number in it. So 1.0 comes back as 1.
[[nodiscard]] Value value_from_number(std::string_view text);

/// When a lease ends, in milliseconds, from what stands in the table. Fractions are rounded up, and what lies beyond
/// 64 bits is taken as their end. A number of seconds counts as ended when its second is over, 1,000 ms later: who
/// counts in whole seconds holds on while its clock still shows that one (S1, S4). 0 and below stay as they are:
/// free. Nothing where the text is no number.
[[nodiscard]] std::optional<std::int64_t> expiry_from_number(std::string_view text, ExpiryUnit unit);

/// What to write for it: in seconds rounded up, so that nobody takes over before it (S4).
[[nodiscard]] std::string number_from_expiry(std::int64_t ms, ExpiryUnit unit);

/// The largest number that is read as at most `ms`: `expiry_from_number(text) <= ms` is `text <= highest(ms)`.
[[nodiscard]] std::string highest_number_within(std::int64_t ms, ExpiryUnit unit);
/// DynamoDB's own ends.
inline constexpr std::string_view largest_number = "9.9999999999999999999999999999999999999E+125";
inline constexpr std::string_view smallest_number = "-9.9999999999999999999999999999999999999E+125";

}  // namespace holdfast::store::dynamodb
