#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/capacity.hpp"
#include "holdfast/row.hpp"

namespace holdfast {

/// A condition on the row as it is: the closed algebra that every store can evaluate.
/// A comparison with an attribute that is missing or of another type is false, whichever way it points,
/// except not_equal, which is then true (DynamoDB's rule). Only numbers and strings are ordered; strings by
/// their bytes. Every attribute of a row that does not exist is missing. No operands: `all` holds, `any` does not.
struct Condition {
  enum class Kind { always, row_exists, exists, not_exists, compare, all, any, negate };
  enum class Compare { equal, not_equal, less, less_equal, greater, greater_equal };

  Kind kind = Kind::always;
  Compare compare = Compare::equal;
  std::string attribute{};
  Value value{};
  std::vector<Condition> operands{};

  static Condition always() { return {}; }
  static Condition row_exists();
  static Condition row_missing();
  static Condition exists(std::string_view attribute);
  static Condition not_exists(std::string_view attribute);
  /// Not there, or null: other programs write null where we write nothing.
  static Condition absent(std::string_view attribute);
  static Condition is(std::string_view attribute, Compare compare, Value value);
  static Condition equals(std::string_view attribute, Value value);
  bool operator==(const Condition&) const = default;
};
Condition operator&&(Condition left, Condition right);
Condition operator||(Condition left, Condition right);
Condition operator!(Condition operand);

/// One change to one attribute. `add` treats a missing attribute as 0 and refuses a non-number (rejected).
struct Change {
  enum class Kind { set, set_if_absent, add, remove };
  Kind kind = Kind::set;
  std::string attribute{};
  Value value{};

  static Change set(std::string_view attribute, Value value);
  static Change set_if_absent(std::string_view attribute, Value value);
  static Change add(std::string_view attribute, std::int64_t amount);
  static Change remove(std::string_view attribute);
  bool operator==(const Change&) const = default;
};

/// One conditional write: every decision that must be made once is one of these. If the row does not exist
/// and the condition holds (e.g. row_missing()), it is created. All changes happen or none.
struct Update {
  std::string key{};
  std::vector<Change> changes{};
  Condition condition{};
  Purpose purpose = Purpose::other;
  bool operator==(const Update&) const = default;
};

/// Evaluates a condition; `row` is null where there is no such row. Used by the memory and SQLite stores.
[[nodiscard]] bool holds(const Condition& condition, const Row* row);

/// Carries the changes out on `row`; false (row untouched) where an `add` meets something that is no integer
/// or overflows 64 bits, or where two changes name one attribute (DynamoDB refuses that too).
[[nodiscard]] bool apply(const std::vector<Change>& changes, Row& row);

}  // namespace holdfast
