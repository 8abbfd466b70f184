#include "sim/history/recorded.hpp"

#include <array>
#include <istream>
#include <optional>
#include <string_view>
#include <utility>

#include "holdfast/store.hpp"
#include "store/json.hpp"

namespace holdfast::sim {

namespace {

using List = Value::List;
using Map = Value::Map;

// ---- Values to and from what they stand for ----

/// What is wrong with a line; caught in read_recorded(), the only place that calls what throws it.
struct Malformed {
  std::string why;
};

Value ns(Instant time) {
  return Value(std::int64_t{time.time_since_epoch().count()});
}

const Value& field(const Map& line, std::string_view name) {
  const auto found = line.find(name);
  if (found == line.end()) throw Malformed{"'" + std::string(name) + "' is missing"};
  return found->second;
}

std::string text(const Value& value) {
  if (value.as_string() == nullptr) throw Malformed{"a string should be where " + store::to_json(value) + " is"};
  return *value.as_string();
}

std::int64_t number(const Value& value) {
  if (value.as_int() == nullptr) throw Malformed{"an integer should be where " + store::to_json(value) + " is"};
  return *value.as_int();
}

const List& list(const Value& value, std::size_t at_least) {
  if (value.as_list() == nullptr || value.as_list()->size() < at_least) {
    throw Malformed{"a list of " + std::to_string(at_least) + " or more should be where " + store::to_json(value) +
                    " is"};
  }
  return *value.as_list();
}

std::string text(const Map& line, std::string_view name) {
  return text(field(line, name));
}
std::int64_t number(const Map& line, std::string_view name) {
  return number(field(line, name));
}
Instant time(const Map& line, std::string_view name) {
  return Instant(Duration(number(line, name)));
}

constexpr std::array<std::pair<Condition::Compare, std::string_view>, 6> signs = {
    {{Condition::Compare::equal, "="},
     {Condition::Compare::not_equal, "!="},
     {Condition::Compare::less, "<"},
     {Condition::Compare::less_equal, "<="},
     {Condition::Compare::greater, ">"},
     {Condition::Compare::greater_equal, ">="}}};
constexpr std::array<std::pair<Condition::Kind, std::string_view>, 7> kinds = {
    {{Condition::Kind::always, "always"},
     {Condition::Kind::row_exists, "row_exists"},
     {Condition::Kind::exists, "exists"},
     {Condition::Kind::not_exists, "not_exists"},
     {Condition::Kind::all, "and"},
     {Condition::Kind::any, "or"},
     {Condition::Kind::negate, "not"}}};
constexpr std::array<std::pair<Change::Kind, std::string_view>, 4> changes = {
    {{Change::Kind::set, "set"},
     {Change::Kind::set_if_absent, "set_if_absent"},
     {Change::Kind::add, "add"},
     {Change::Kind::remove, "remove"}}};
constexpr std::array outcomes = {Outcome::applied, Outcome::conflict, Outcome::throttled, Outcome::unknown,
                                 Outcome::rejected};

template <class Table, class Kind>
Value word_for(const Table& table, Kind kind) {
  for (const auto& [known, word] : table) {
    if (known == kind) return Value(word);
  }
  return {};
}

Value to_value(const Condition& condition) {
  if (condition.kind == Condition::Kind::compare) {
    return List{word_for(signs, condition.compare), Value(condition.attribute), condition.value};
  }
  List found{word_for(kinds, condition.kind)};
  if (condition.kind == Condition::Kind::exists || condition.kind == Condition::Kind::not_exists) {
    found.emplace_back(condition.attribute);
  }
  for (const Condition& operand : condition.operands) found.push_back(to_value(operand));
  return found;
}

Condition condition_from(const Value& value) {
  const List& parts = list(value, 1);
  const std::string word = text(parts[0]);
  Condition condition;
  for (const auto& [compare, sign] : signs) {
    if (sign != word) continue;
    list(value, 3);
    return Condition::is(text(parts[1]), compare, parts[2]);
  }
  for (const auto& [kind, name] : kinds) {
    if (name != word) continue;
    condition.kind = kind;
    if (kind == Condition::Kind::exists || kind == Condition::Kind::not_exists) {
      condition.attribute = text(list(value, 2)[1]);
    } else {
      for (std::size_t i = 1; i < parts.size(); ++i) condition.operands.push_back(condition_from(parts[i]));
      if (kind == Condition::Kind::negate && condition.operands.size() != 1) throw Malformed{"'not' takes one"};
    }
    return condition;
  }
  throw Malformed{"there is no condition '" + word + "'"};
}

Value to_value(const Change& change) {
  List found{word_for(changes, change.kind), Value(change.attribute)};
  if (change.kind != Change::Kind::remove) found.push_back(change.value);
  return found;
}

Change change_from(const Value& value) {
  const List& parts = list(value, 2);
  const std::string word = text(parts[0]);
  for (const auto& [kind, name] : changes) {
    if (name != word) continue;
    Change change{kind, text(parts[1]), {}};
    if (kind != Change::Kind::remove) change.value = list(value, 3)[2];
    return change;
  }
  throw Malformed{"there is no change '" + word + "'"};
}

Attributes attributes_from(const Value& value) {
  if (value.as_map() == nullptr) throw Malformed{"attributes should be where " + store::to_json(value) + " is"};
  return *value.as_map();
}

Outcome outcome_from(const std::string& word) {
  for (const Outcome outcome : outcomes) {
    if (to_string(outcome) == word) return outcome;
  }
  throw Malformed{"there is no outcome '" + word + "'"};
}

// ---- Lines ----

Operation operation_from(const Map& line) {
  Operation operation;
  operation.client = text(line, "client");
  operation.key = text(line, "key");
  operation.invoked = time(line, "invoked_ns");
  operation.outcome = outcome_from(text(line, "outcome"));
  const bool is_definite = operation.outcome == Outcome::applied || operation.outcome == Outcome::conflict;
  if (is_definite || line.contains("returned_ns")) operation.returned = time(line, "returned_ns");
  if (is_definite && operation.returned < operation.invoked) throw Malformed{"it returned before it was invoked"};
  if (is_definite) {
    const Value& row = field(line, "row");
    if (!(row == Value(nullptr))) operation.row = Row{operation.key, attributes_from(row)};
  }
  if (const std::string what = text(line, "op"); what == "update") {
    Update update;
    update.key = operation.key;
    for (const Value& change : list(field(line, "changes"), 0)) update.changes.push_back(change_from(change));
    update.condition = condition_from(field(line, "if"));
    operation.update = std::move(update);
  } else if (what != "get") {
    throw Malformed{"there is no operation '" + what + "'"};
  } else if (operation.outcome == Outcome::conflict) {
    throw Malformed{"a get meets no conflict"};
  }
  return operation;
}

/// From when to when: the second is no earlier than the first.
Instant end_of(const Map& line) {
  const Instant until = time(line, "until_ns");
  if (until < time(line, "from_ns")) throw Malformed{"it ends before it begins"};
  return until;
}

/// What a line is, is told by the one of these names that it has.
bool take_ownership(const Map& line, Recorded& into) {
  if (line.contains("grant")) {
    into.grants.push_back(
        {text(line, "grant"), text(line, "owner"), {number(line, "epoch")}, time(line, "from_ns"), end_of(line)});
  } else if (line.contains("belief")) {
    into.beliefs.push_back(
        {text(line, "belief"), text(line, "owner"), {number(line, "epoch")}, time(line, "from_ns"), end_of(line)});
  } else if (line.contains("effect")) {
    into.effects.push_back({text(line, "effect"),
                            text(line, "by"),
                            {number(line, "epoch")},
                            time(line, "from_ns"),
                            end_of(line),
                            text(line, "what")});
  } else {
    return false;
  }
  return true;
}

bool take_delivery(const Map& line, Recorded& into) {
  if (line.contains("produced")) {
    into.produced.push_back({text(line, "produced"), number(line, "seq"), text(line, "item"), time(line, "at_ns")});
  } else if (line.contains("delivered")) {
    into.delivered.push_back({text(line, "delivered"),
                              {number(line, "epoch")},
                              number(line, "seq"),
                              text(line, "item"),
                              time(line, "at_ns"),
                              text(line, "by")});
  } else if (line.contains("gap")) {
    into.gaps.push_back({text(line, "gap"),
                         {number(line, "epoch")},
                         number(line, "first"),
                         number(line, "last"),
                         time(line, "at_ns")});
  } else if (line.contains("enqueued")) {
    const Instant until = line.contains("until_ns") ? end_of(line) : Instant::max();
    into.enqueued.push_back({text(line, "enqueued"), text(line, "item"), time(line, "from_ns"), until});
  } else if (line.contains("dequeued")) {
    into.dequeued.push_back(
        {text(line, "dequeued"), text(line, "item"), {number(line, "epoch")}, time(line, "at_ns"), text(line, "by")});
  } else {
    return false;
  }
  return true;
}

void take_line(const Value& value, Recorded& into) {
  const Map* line = value.as_map();
  if (line == nullptr) throw Malformed{"a line is a JSON object"};
  if (line->contains("op")) {
    into.operations.push_back(operation_from(*line));
  } else if (line->contains("initial")) {
    const std::string key = text(*line, "initial");
    into.initial[key] = Row{key, attributes_from(field(*line, "attributes"))};
  } else if (!take_ownership(*line, into) && !take_delivery(*line, into)) {
    throw Malformed{"nothing in it says what it is"};
  }
}

std::string counted(std::initializer_list<std::pair<std::size_t, std::string_view>> counts) {
  std::string out;
  for (const auto& [count, what] : counts) {
    out.append(out.empty() ? "" : ", ").append(std::to_string(count)).append(" ").append(what);
  }
  return out;
}

}  // namespace

std::string to_line(const Row& initial) {
  return store::to_json(Map{{"initial", initial.key}, {"attributes", initial.attributes}});
}

std::string to_line(const Operation& operation) {
  Map line{{"op", operation.update ? "update" : "get"},
           {"client", operation.client},
           {"key", operation.key},
           {"invoked_ns", ns(operation.invoked)},
           {"outcome", to_string(operation.outcome)}};
  if (operation.outcome != Outcome::unknown) line["returned_ns"] = ns(operation.returned);
  if (operation.outcome == Outcome::applied || operation.outcome == Outcome::conflict) {
    line["row"] = operation.row ? Value(operation.row->attributes) : Value(nullptr);
  }
  if (operation.update) {
    List all;
    for (const Change& change : operation.update->changes) all.push_back(to_value(change));
    line["changes"] = std::move(all);
    line["if"] = to_value(operation.update->condition);
  }
  return store::to_json(line);
}

std::string to_line(const Grant& grant) {
  return store::to_json(Map{{"grant", grant.key},
                            {"owner", grant.owner},
                            {"epoch", grant.epoch.value},
                            {"from_ns", ns(grant.from)},
                            {"until_ns", ns(grant.until)}});
}

std::string to_line(const Belief& belief) {
  return store::to_json(Map{{"belief", belief.key},
                            {"owner", belief.owner},
                            {"epoch", belief.epoch.value},
                            {"from_ns", ns(belief.from)},
                            {"until_ns", ns(belief.until)}});
}

std::string to_line(const Effect& effect) {
  return store::to_json(Map{{"effect", effect.key},
                            {"by", effect.by},
                            {"epoch", effect.epoch.value},
                            {"from_ns", ns(effect.from)},
                            {"until_ns", ns(effect.until)},
                            {"what", effect.what}});
}

std::string to_line(const Produced& produced) {
  return store::to_json(Map{
      {"produced", produced.connection}, {"seq", produced.seq}, {"item", produced.item}, {"at_ns", ns(produced.at)}});
}

std::string to_line(const Delivered& delivered) {
  return store::to_json(Map{{"delivered", delivered.connection},
                            {"epoch", delivered.epoch.value},
                            {"seq", delivered.seq},
                            {"item", delivered.item},
                            {"at_ns", ns(delivered.at)},
                            {"by", delivered.by}});
}

std::string to_line(const Gap& gap) {
  return store::to_json(Map{{"gap", gap.connection},
                            {"epoch", gap.epoch.value},
                            {"first", gap.first},
                            {"last", gap.last},
                            {"at_ns", ns(gap.at)}});
}

std::string to_line(const Enqueued& enqueued) {
  Map line{{"enqueued", enqueued.group}, {"item", enqueued.item}, {"from_ns", ns(enqueued.from)}};
  if (enqueued.until != Instant::max()) line["until_ns"] = ns(enqueued.until);
  return store::to_json(line);
}

std::string to_line(const Dequeued& dequeued) {
  return store::to_json(Map{{"dequeued", dequeued.group},
                            {"item", dequeued.item},
                            {"epoch", dequeued.epoch.value},
                            {"at_ns", ns(dequeued.at)},
                            {"by", dequeued.by}});
}

Result<Recorded> read_recorded(std::istream& in) {
  Recorded recorded;
  std::string line;
  bool any = false;
  for (std::size_t count = 1; std::getline(in, line); ++count) {
    if (line.empty()) continue;
    any = true;
    const std::string where = "line " + std::to_string(count) + ": ";
    const auto value = store::value_from_json(line);
    if (!value) return fail(Code::corrupt, where + value.error().detail);
    try {
      take_line(*value, recorded);
    } catch (const Malformed& malformed) {
      return fail(Code::corrupt, where + malformed.why);
    }
  }
  // A folder, or a disk that fails: what was not read must not pass for good.
  if (in.bad()) return fail(Code::unavailable, "it cannot be read to its end");
  if (!any) return fail(Code::corrupt, "nothing is recorded in it");
  return recorded;
}

std::vector<NamedVerdict> judge(const Recorded& recorded, SearchLimits limits) {
  std::vector<Grant> grants = recorded.grants;
  // Not both: one grant would be told twice.
  if (grants.empty()) grants = grants_in(recorded.operations);
  const std::vector<Belief>& beliefs = recorded.beliefs;
  std::vector<Effect> checkpoints = effects_in(recorded.operations, attribute::last_seq);
  Account account = sim::account(recorded.produced, recorded.delivered, recorded.gaps);
  const std::string counts = counted({{account.produced, "produced"},
                                      {account.counted_once, "counted once"},
                                      {account.repeats, "repeats"},
                                      {account.covered, "covered by gaps"}});
  return {{"linearizability", check_linearizable(recorded.operations, recorded.initial, limits),
           counted({{recorded.operations.size(), "operations"}})},
          {"epochs", check_epochs(grants), counted({{grants.size(), "grants"}})},
          {"owners", check_owners(grants, beliefs, recorded.effects),
           counted({{grants.size(), "grants"}, {beliefs.size(), "beliefs"}, {recorded.effects.size(), "effects"}})},
          {"one believer", check_one_believer(beliefs, grants), counted({{beliefs.size(), "beliefs"}})},
          {"writers", check_writers(recorded.operations), counted({{checkpoints.size(), "checkpoints"}})},
          {"fence of checkpoints", check_fence(checkpoints), counted({{checkpoints.size(), "checkpoints"}})},
          {"fence of effects", check_fence(recorded.effects), counted({{recorded.effects.size(), "effects"}})},
          {"account", std::move(account.verdict), counts},
          {"order", check_fifo(recorded.enqueued, recorded.dequeued),
           counted({{recorded.enqueued.size(), "put in"}, {recorded.dequeued.size(), "delivered"}})}};
}

}  // namespace holdfast::sim
