#include "holdfast/update.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

using Compare = Condition::Compare;

constexpr std::size_t operands_usual = 4;  // of one `all` or `any`: room that is made at once

/// a && b && c is one list of three: flat for whoever renders or evaluates it.
Condition combine(Condition::Kind kind, Condition&& left, Condition&& right) {
  Condition list;
  if (left.kind == kind) {
    list = std::move(left);
  } else {
    list.kind = kind;
    list.operands.reserve(operands_usual);
    list.operands.push_back(std::move(left));
  }
  if (right.kind == kind) {
    std::move(right.operands.begin(), right.operands.end(), std::back_inserter(list.operands));
  } else {
    list.operands.push_back(std::move(right));
  }
  return list;
}

template <class T>
bool ordered(Compare compare, const T& left, const T& right) {
  switch (compare) {
    case Compare::less:
      return left < right;
    case Compare::less_equal:
      return left <= right;
    case Compare::greater:
      return left > right;
    case Compare::greater_equal:
      return left >= right;
    case Compare::equal:
    case Compare::not_equal:
      break;
  }
  HOLDFAST_ASSERT(false, "only the four orderings come here");
  return false;
}

bool compares(Compare compare, const Value* found, const Value& wanted) {
  if (compare == Compare::not_equal) return found == nullptr || !(*found == wanted);
  if (found == nullptr) return false;
  if (compare == Compare::equal) return *found == wanted;
  if (found->as_int() != nullptr && wanted.as_int() != nullptr) {
    return ordered(compare, *found->as_int(), *wanted.as_int());
  }
  // char_traits compares as unsigned bytes, which is the order of UTF-8 and of DynamoDB.
  if (found->as_string() != nullptr && wanted.as_string() != nullptr) {
    return ordered(compare, *found->as_string(), *wanted.as_string());
  }
  const auto* left = std::get_if<double>(&found->data());
  const auto* right = std::get_if<double>(&wanted.data());
  return left != nullptr && right != nullptr && ordered(compare, *left, *right);
}

Change make_change(Change::Kind kind, std::string_view attribute, Value value) {
  return Change{kind, std::string(attribute), std::move(value)};
}

bool names_one_attribute_twice(const std::vector<Change>& changes) {
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    const auto same = [&](const Change& other) { return other.attribute == change->attribute; };
    if (std::any_of(std::next(change), changes.end(), same)) return true;
  }
  return false;
}

/// The sum that an `add` leaves behind; nothing where it cannot be done.
std::optional<std::int64_t> sum(const Change& change, const Row& row) {
  const std::int64_t* amount = change.value.as_int();
  const Value* found = row.find(change.attribute);
  if (amount == nullptr || (found != nullptr && found->as_int() == nullptr)) return std::nullopt;
  std::int64_t result = 0;
  if (__builtin_add_overflow(found == nullptr ? 0 : *found->as_int(), *amount, &result)) return std::nullopt;
  return result;
}

}  // namespace

Condition Condition::row_exists() {
  return {.kind = Kind::row_exists};
}

Condition Condition::row_missing() {
  return !row_exists();
}

Condition Condition::exists(std::string_view attribute) {
  return {.kind = Kind::exists, .attribute = std::string(attribute)};
}

Condition Condition::not_exists(std::string_view attribute) {
  return {.kind = Kind::not_exists, .attribute = std::string(attribute)};
}

Condition Condition::absent(std::string_view attribute) {
  return not_exists(attribute) || equals(attribute, nullptr);
}

Condition Condition::is(std::string_view attribute, Compare compare, Value value) {
  return {.kind = Kind::compare, .compare = compare, .attribute = std::string(attribute), .value = std::move(value)};
}

Condition Condition::equals(std::string_view attribute, Value value) {
  return is(attribute, Compare::equal, std::move(value));
}

Condition operator&&(Condition left, Condition right) {
  return combine(Condition::Kind::all, std::move(left), std::move(right));
}

Condition operator||(Condition left, Condition right) {
  return combine(Condition::Kind::any, std::move(left), std::move(right));
}

Condition operator!(Condition operand) {
  Condition condition;
  condition.kind = Condition::Kind::negate;
  condition.operands.push_back(std::move(operand));
  return condition;
}

Change Change::set(std::string_view attribute, Value value) {
  return make_change(Kind::set, attribute, std::move(value));
}

Change Change::set_if_absent(std::string_view attribute, Value value) {
  return make_change(Kind::set_if_absent, attribute, std::move(value));
}

Change Change::add(std::string_view attribute, std::int64_t amount) {
  return make_change(Kind::add, attribute, Value(amount));
}

Change Change::remove(std::string_view attribute) {
  return make_change(Kind::remove, attribute, Value());
}

bool holds(const Condition& condition, const Row* row) {
  const auto find = [&] { return row == nullptr ? nullptr : row->find(condition.attribute); };
  const auto operand_holds = [&](const Condition& operand) { return holds(operand, row); };
  switch (condition.kind) {
    case Condition::Kind::always:
      return true;
    case Condition::Kind::row_exists:
      return row != nullptr;
    case Condition::Kind::exists:
      return find() != nullptr;
    case Condition::Kind::not_exists:
      return find() == nullptr;
    case Condition::Kind::compare:
      return compares(condition.compare, find(), condition.value);
    case Condition::Kind::all:
      return std::all_of(condition.operands.begin(), condition.operands.end(), operand_holds);
    case Condition::Kind::any:
      return std::any_of(condition.operands.begin(), condition.operands.end(), operand_holds);
    case Condition::Kind::negate:
      HOLDFAST_ASSERT(condition.operands.size() == 1, "a negation has one operand");
      return !operand_holds(condition.operands.front());
  }
  HOLDFAST_ASSERT(false, "every kind of condition is handled");
  return false;
}

bool apply(const std::vector<Change>& changes, Row& row) {
  if (names_one_attribute_twice(changes)) return false;
  // No attribute is changed twice, so the sums can be checked before anything is touched.
  for (const Change& change : changes) {
    if (change.kind == Change::Kind::add && !sum(change, row)) return false;
  }
  for (const Change& change : changes) {
    switch (change.kind) {
      case Change::Kind::set:
        row.attributes.insert_or_assign(change.attribute, change.value);
        break;
      case Change::Kind::set_if_absent:
        row.attributes.try_emplace(change.attribute, change.value);
        break;
      case Change::Kind::add:
        row.attributes.insert_or_assign(change.attribute, *sum(change, row));
        break;
      case Change::Kind::remove:
        row.attributes.erase(change.attribute);
        break;
    }
  }
  return true;
}

}  // namespace holdfast
