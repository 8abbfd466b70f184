#include <array>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <string_view>
#include <variant>

#include "sim/history/operation.hpp"

namespace holdfast::sim {

namespace {

void write(const Value& value, std::string& out);

struct Writer {
  std::string& out;
  void operator()(std::nullptr_t) const { out += "null"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { out += std::to_string(value); }
  void operator()(double value) const {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.17g", value);
    out += text.data();
  }
  void operator()(const std::string& value) const { out.append("'").append(value).append("'"); }
  void operator()(const Value::Unreadable& value) const { out += value.what; }
  void operator()(const Value::List& list) const {
    const char* between = "[";
    for (const Value& item : list) {
      out += between;
      write(item, out);
      between = ", ";
    }
    out += list.empty() ? "[]" : "]";
  }
  void operator()(const Value::Map& map) const {
    const char* between = "{";
    for (const auto& [name, item] : map) {
      out.append(between).append(name).append(": ");
      write(item, out);
      between = ", ";
    }
    out += map.empty() ? "{}" : "}";
  }
};

void write(const Value& value, std::string& out) {
  std::visit(Writer{out}, value.data());
}

std::string_view sign(Condition::Compare compare) {
  switch (compare) {
    case Condition::Compare::equal:
      return " = ";
    case Condition::Compare::not_equal:
      return " != ";
    case Condition::Compare::less:
      return " < ";
    case Condition::Compare::less_equal:
      return " <= ";
    case Condition::Compare::greater:
      return " > ";
    case Condition::Compare::greater_equal:
      return " >= ";
  }
  return " ? ";
}

std::string joined(const std::vector<Condition>& operands, std::string_view between) {
  std::string out = "(";
  for (const Condition& operand : operands) {
    if (out.size() > 1) out += between;
    out += in_words(operand);
  }
  return out + ")";
}

std::string in_words(const Change& change) {
  std::string value;
  write(change.value, value);
  switch (change.kind) {
    case Change::Kind::set:
      return change.attribute + " := " + value;
    case Change::Kind::set_if_absent:
      return change.attribute + " := " + value + " if absent";
    case Change::Kind::add:
      return change.attribute + " += " + value;
    case Change::Kind::remove:
      return "remove " + change.attribute;
  }
  return {};
}

}  // namespace

std::string in_words(Instant time) {
  const std::int64_t ns = time.time_since_epoch().count();
  const std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "", size / 1'000'000'000,
                size % 1'000'000'000);
  std::string out = text.data();
  // Milliseconds are always shown, finer digits where there are any.
  while (out.back() == '0' && out[out.size() - 4] != '.') out.pop_back();
  return out + " s";
}

std::string in_words(const std::optional<Row>& row) {
  if (!row) return "no row";
  std::string out;
  Writer{out}(row->attributes);
  return out;
}

std::string in_words(const Condition& condition) {
  std::string value;
  write(condition.value, value);
  switch (condition.kind) {
    case Condition::Kind::always:
      return "always";
    case Condition::Kind::row_exists:
      return "row exists";
    case Condition::Kind::exists:
      return condition.attribute + " exists";
    case Condition::Kind::not_exists:
      return condition.attribute + " is missing";
    case Condition::Kind::compare:
      return std::string(condition.attribute).append(sign(condition.compare)).append(value);
    case Condition::Kind::all:
      return joined(condition.operands, " and ");
    case Condition::Kind::any:
      return joined(condition.operands, " or ");
    case Condition::Kind::negate:
      return "not " + joined(condition.operands, "");
  }
  return {};
}

std::string in_words(const Operation& operation) {
  std::string out = operation.client + ", " + in_words(operation.invoked) + " to ";
  out += operation.outcome == Outcome::unknown ? "no reply" : in_words(operation.returned);
  out += operation.update ? ": update " : ": get ";
  out += operation.key;
  if (operation.update) {
    const char* between = " ";
    for (const Change& change : operation.update->changes) {
      out.append(between).append(in_words(change));
      between = ", ";
    }
    out += " if " + in_words(operation.update->condition);
  }
  out.append(" -> ").append(to_string(operation.outcome));
  if (operation.outcome == Outcome::applied || operation.outcome == Outcome::conflict) {
    out += ", " + in_words(operation.row);
  }
  return out;
}

}  // namespace holdfast::sim
