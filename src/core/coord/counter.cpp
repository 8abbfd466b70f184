#include "core/coord/counter.hpp"

#include <algorithm>

#include "core/coord/memory.hpp"
#include "core/coord/names.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

/// Of goods there are never fewer than none.
AddOptions with_floor(AddOptions options) {
  if (options.to == AddOptions::To::stock) options.floor = std::max<std::int64_t>(options.floor.value_or(0), 0);
  return options;
}

}  // namespace

bool was_precluded(const Row& operation) {
  return operation.text(coord::outcome) == coord::precluded;
}

Failure given_up(std::string_view id) {
  return {Failure::Kind::mismatch, Error(Code::usage, "What had the id " + std::string(id) +
                                                          " was given up, and never happened. Use another id.")};
}

std::string operation_key(std::string_view scope, std::string_view op_id) {
  // Both may hold anything: a length tells where one ends.
  return std::string(coord::operation_prefix) + std::to_string(scope.size()) + "#" + std::string(scope) + "#" +
         std::string(op_id);
}

std::string Add::row_key(AddOptions::To to, std::string_view key) {
  return std::string(to == AddOptions::To::stock ? coord::stock_prefix : coord::counter_prefix) + std::string(key);
}

std::string_view Add::number_in(AddOptions::To to) {
  return to == AddOptions::To::stock ? coord::available : coord::value;
}

Add::Add(AddOptions options, Instant deadline, Random& random)
    : RowProcedure(std::vector{row_key(options.to, options.key),
                               operation_key(row_key(options.to, options.key), options.op_id)},
                   deadline, random),
      options_(with_floor(std::move(options))) {
  HOLDFAST_ASSERT(!options_.op_id.empty(), "an operation has an id");
}

std::string Add::name() const {
  return (options_.to == AddOptions::To::stock ? "The stock of " : "The counter ") + options_.key;
}

Add::Plan Add::plan(Now now) {
  const std::string_view number = number_in(options_.to);
  const Row* counter = find(keys()[0]);
  const Row* operation = find(keys()[1]);
  const std::int64_t value = counter == nullptr ? 0 : counter->number(number);
  if (operation != nullptr) {
    if (was_precluded(*operation)) return given_up(options_.op_id);
    if (operation->number(coord::delta) != options_.delta) {
      return Failure{Failure::Kind::mismatch,
                     Error(Code::usage, "The operation " + options_.op_id + " was used before to add " +
                                            std::to_string(operation->number(coord::delta)) + ", not " +
                                            std::to_string(options_.delta) + ".")};
    }
    return Added{value, operation->text(attribute::attempt) != attempt().to_string()};
  }
  if (was_applied()) return Added{sum_, false};  // the rows were not told, but they are there
  if (__builtin_add_overflow(value, options_.delta, &sum_)) {
    return Failure{Failure::Kind::refused,
                   Error(Code::exhausted, name() + " is " + std::to_string(value) + "; " +
                                              std::to_string(options_.delta) + " more does not fit into 64 bits.")};
  }
  Condition allowed;
  std::int64_t needed = 0;
  if (options_.floor && options_.delta < 0) {
    if (sum_ < *options_.floor || __builtin_sub_overflow(*options_.floor, options_.delta, &needed)) {
      return Failure{
          Failure::Kind::refused,
          Error(Code::exhausted, name() + " is " + std::to_string(value) + "; " + std::to_string(options_.delta) +
                                     " would take it below " + std::to_string(*options_.floor) + ".")};
    }
    // Others may subtract meanwhile, as long as enough is left for us; a counter that is not there is 0.
    allowed = Condition::is(number, Condition::Compare::greater_equal, needed);
    if (counter == nullptr) allowed = Condition::row_missing();
  }
  std::vector<Change> note = remembered(now.wall, options_.remember);
  note.push_back(Change::set(coord::delta, options_.delta));
  note.push_back(Change::set(attribute::attempt, attempt().to_string()));
  return std::vector{Update{keys()[0], {Change::add(number, options_.delta)}, std::move(allowed)},
                     Update{keys()[1], std::move(note), Condition::row_missing()}};
}

ReadNumber::ReadNumber(AddOptions::To to, std::string_view key, Instant deadline, Random& random)
    : RowProcedure(Add::row_key(to, key), deadline, random), to_(to) {}

ReadNumber::Plan ReadNumber::plan(Now /*now*/) {
  const Row* row = find(key());
  return row == nullptr ? 0 : row->number(Add::number_in(to_));
}

}  // namespace holdfast
