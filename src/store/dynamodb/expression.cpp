#include "store/dynamodb/expression.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/number.hpp"
#include "holdfast/assert.hpp"
#include "store/dynamodb/item.hpp"
#include "store/dynamodb/number.hpp"
#include "store/json.hpp"
#include "store/request.hpp"

namespace holdfast::store::dynamodb {

namespace {

using Compare = Condition::Compare;
using Kind = Condition::Kind;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

/// The names and values of an expression, each by a placeholder: a name may be a reserved word, or hold any
/// character.
class Placeholders {
 public:
  explicit Placeholders(const Names& names) : names_(names) {}

  std::string of_ours(std::string_view attribute) {
    if (!refused_) refused_ = names_.refusal(attribute);
    return of_theirs(names_.theirs(attribute));
  }
  std::string of_theirs(std::string_view name) {
    const auto found = std::find(used_.begin(), used_.end(), name);
    const auto index = static_cast<std::size_t>(found - used_.begin());
    if (found == used_.end()) used_.emplace_back(name);
    return "#" + std::to_string(index);
  }
  /// Of a value that `write` appends.
  template <class Write>
  std::string of_value(Write write) {
    const std::string placeholder = ":" + std::to_string(count_++);
    values_.append(values_.empty() ? "" : ",").append("\"").append(placeholder).append("\":");
    write(values_);
    return placeholder;
  }
  std::string of_number(std::string_view digits) {
    return of_value([&](std::string& out) { write_number(digits, out); });
  }
  void refuse(std::string detail) {
    if (!refused_) refused_ = Error(Code::usage, std::move(detail));
  }

  [[nodiscard]] const std::optional<Error>& refused() const { return refused_; }
  void write(std::string& out) const {
    if (!used_.empty()) {
      out.append(R"(,"ExpressionAttributeNames":)");
      for (std::size_t i = 0; i < used_.size(); ++i) {
        out.append(i == 0 ? "{\"#" : ",\"#").append(std::to_string(i)).append("\":");
        write_json(std::string_view(used_[i]), out);
      }
      out.push_back('}');
    }
    if (!values_.empty()) out.append(R"(,"ExpressionAttributeValues":{)").append(values_).push_back('}');
  }

 private:
  const Names& names_;
  std::vector<std::string> used_;
  std::string values_;
  std::size_t count_ = 0;
  std::optional<Error> refused_;
};

/// What a part of a condition comes to: known beforehand, or for the server to say.
struct Term {
  enum class Kind { holds, fails, simple, conjunction, disjunction } kind = Kind::holds;
  std::string text{};

  [[nodiscard]] bool is_known() const { return kind == Kind::holds || kind == Kind::fails; }
};

Term known(bool value) {
  return {value ? Term::Kind::holds : Term::Kind::fails};
}

Term simple(std::string text) {
  return {Term::Kind::simple, std::move(text)};
}

/// DynamoDB refuses parentheses that are not needed.
std::string operand(const Term& term) {
  return term.kind == Term::Kind::simple ? term.text : "(" + term.text + ")";
}

Term negation(const Term& term) {
  if (term.is_known()) return known(term.kind == Term::Kind::fails);
  constexpr std::string_view word = "NOT ";
  if (term.kind == Term::Kind::simple && term.text.starts_with(word)) return simple(term.text.substr(word.size()));
  return simple(std::string(word) + operand(term));
}

/// `deciding` is what one operand alone decides: a failing one for "all of", a holding one for "any of".
Term combination(const std::vector<Term>& terms, bool all) {
  const Term::Kind deciding = all ? Term::Kind::fails : Term::Kind::holds;
  std::vector<const Term*> open;
  for (const Term& term : terms) {
    if (term.kind == deciding) return known(!all);
    if (!term.is_known()) open.push_back(&term);
  }
  if (open.empty()) return known(all);
  if (open.size() == 1) return *open.front();
  Term result{all ? Term::Kind::conjunction : Term::Kind::disjunction};
  for (const Term* term : open) {
    if (term != open.front()) result.text += all ? " AND " : " OR ";
    result.text += operand(*term);
  }
  return result;
}

std::string_view sign(Compare compare) {
  switch (compare) {
    case Compare::equal:
    case Compare::not_equal:
      return " = ";
    case Compare::less:
      return " < ";
    case Compare::less_equal:
      return " <= ";
    case Compare::greater:
      return " > ";
    case Compare::greater_equal:
      return " >= ";
  }
  HOLDFAST_ASSERT(false, "every comparison is handled");
  return "";
}

bool is_number(const Value& value) {
  return value.as_int() != nullptr || std::holds_alternative<double>(value.data());
}

std::optional<bool> known_beforehand(const Condition& condition);

std::optional<bool> known_comparison(const Condition& condition) {
  const Value& value = condition.value;
  const bool is_equality = condition.compare == Compare::equal || condition.compare == Compare::not_equal;
  if (is_equality) return std::nullopt;
  if (!is_number(value) && value.as_string() == nullptr) return false;  // the server would refuse it
  const std::int64_t* ms = condition.attribute == attribute::expires_at ? value.as_int() : nullptr;
  if (ms == nullptr) return std::nullopt;
  const bool nothing_is_so = (condition.compare == Compare::less && *ms == smallest) ||
                             (condition.compare == Compare::greater && *ms == largest);
  return nothing_is_so ? std::optional(false) : std::nullopt;
}

std::optional<bool> known_combination(const Condition& condition) {
  const bool all = condition.kind == Kind::all;
  bool all_known = true;
  for (const Condition& each : condition.operands) {
    const auto known = known_beforehand(each);
    if (known && *known != all) return !all;  // it decides alone
    all_known = all_known && known;
  }
  return all_known ? std::optional(all) : std::nullopt;
}

/// What the server need not be asked, and must not: it refuses names and values that no expression uses.
std::optional<bool> known_beforehand(const Condition& condition) {
  switch (condition.kind) {
    case Kind::always:
      return true;
    case Kind::compare:
      return known_comparison(condition);
    case Kind::all:
    case Kind::any:
      return known_combination(condition);
    case Kind::negate: {
      const auto known = known_beforehand(condition.operands.front());
      return known ? std::optional(!*known) : std::nullopt;
    }
    case Kind::row_exists:
    case Kind::exists:
    case Kind::not_exists:
      break;
  }
  return std::nullopt;
}

class ConditionWriter {
 public:
  ConditionWriter(const Names& names, Placeholders& placeholders) : names_(names), placeholders_(placeholders) {}

  Term term(const Condition& condition) {
    if (const auto value = known_beforehand(condition)) return known(*value);
    switch (condition.kind) {
      case Kind::always:
        return known(true);
      case Kind::row_exists:
        return simple("attribute_exists(" + placeholders_.of_theirs(names_.key()) + ")");
      case Kind::exists:
        return simple("attribute_exists(" + placeholders_.of_ours(condition.attribute) + ")");
      case Kind::not_exists:
        return simple("attribute_not_exists(" + placeholders_.of_ours(condition.attribute) + ")");
      case Kind::compare:
        return comparison(condition);
      case Kind::all:
      case Kind::any: {
        std::vector<Term> terms;
        for (const Condition& each : condition.operands) terms.push_back(term(each));
        return combination(terms, condition.kind == Kind::all);
      }
      case Kind::negate:
        HOLDFAST_ASSERT(condition.operands.size() == 1, "a negation has one operand");
        return negation(term(condition.operands.front()));
    }
    HOLDFAST_ASSERT(false, "every kind of condition is handled");
    return known(false);
  }

 private:
  Term comparison(const Condition& condition) {
    const Value& value = condition.value;
    if (const auto problem = check_value(value)) {
      placeholders_.refuse(condition.attribute + " cannot be compared with this: " + problem->detail);
      return known(false);
    }
    const Compare compare = condition.compare;
    // Not "<>": what that says of a missing attribute is not the same in every server.
    if (compare == Compare::not_equal) {
      Condition equal = condition;
      equal.compare = Compare::equal;
      return negation(comparison(equal));
    }
    if (condition.attribute == attribute::expires_at && is_number(value)) return expiry_comparison(condition);
    const std::string name = placeholders_.of_ours(condition.attribute);
    return simple(name + std::string(sign(compare)) +
                  placeholders_.of_value([&](std::string& out) { write_value(value, out); }));
  }

  /// As expiry_from_number() reads: one millisecond of ours stands for all that is rounded up to it.
  Term expiry_comparison(const Condition& condition) {
    const std::int64_t* ms = condition.value.as_int();
    if (ms == nullptr) {
      placeholders_.refuse("an expiry is compared with whole milliseconds only");
      return known(false);
    }
    switch (condition.compare) {
      case Compare::less_equal:
        return expiry_within(*ms);
      case Compare::less:
        return expiry_within(*ms - 1);  // nothing is below the smallest: known beforehand
      case Compare::greater:
        return expiry_beyond(*ms);
      case Compare::greater_equal:
        return *ms == smallest ? expiry_exists() : expiry_beyond(*ms - 1);
      case Compare::equal:
      case Compare::not_equal:
        break;
    }
    if (*ms == smallest) return expiry_within(*ms);
    if (*ms == largest) return expiry_beyond(*ms - 1);
    return combination({expiry_beyond(*ms - 1), expiry_within(*ms)}, true);
  }

  Term expiry_within(std::int64_t ms) {
    const std::string end =
        ms == largest ? std::string(largest_number) : highest_number_within(ms, names_.expiry_unit());
    const std::string name = placeholders_.of_ours(attribute::expires_at);
    return simple(name + " <= " + placeholders_.of_number(end));
  }
  Term expiry_beyond(std::int64_t ms) {
    const std::string name = placeholders_.of_ours(attribute::expires_at);
    return simple(name + " > " + placeholders_.of_number(highest_number_within(ms, names_.expiry_unit())));
  }
  Term expiry_exists() {
    const std::string name = placeholders_.of_ours(attribute::expires_at);
    return simple(name + " >= " + placeholders_.of_number(smallest_number));
  }

  const Names& names_;
  Placeholders& placeholders_;
};

/// An `add` that would leave 64 bits behind is not to be made, but DynamoDB goes on to 38 digits.
std::vector<Term> bounds_of_sums(const std::vector<Change>& changes, Placeholders& placeholders) {
  std::vector<Term> terms;
  for (const Change& change : changes) {
    const std::int64_t* amount = change.value.as_int();
    if (change.kind != Change::Kind::add || amount == nullptr || *amount == 0) continue;
    const bool up = *amount > 0;
    const std::int64_t end = up ? largest - *amount : smallest - *amount;
    const std::string name = placeholders.of_ours(change.attribute);
    terms.push_back(simple("NOT " + name + (up ? " > " : " < ") + placeholders.of_number(std::to_string(end))));
  }
  return terms;
}

class ChangeWriter {
 public:
  ChangeWriter(const Names& names, Placeholders& placeholders) : names_(names), placeholders_(placeholders) {}

  void add(const Change& change) {
    const std::string name = placeholders_.of_ours(change.attribute);
    switch (change.kind) {
      case Change::Kind::set:
        return append(set_, name + " = " + value(change));
      case Change::Kind::set_if_absent:
        return append(set_, name + " = if_not_exists(" + name + ", " + value(change) + ")");
      case Change::Kind::add:
        if (change.value.as_int() == nullptr) placeholders_.refuse("only whole numbers can be added");
        if (change.attribute == attribute::expires_at) placeholders_.refuse("nothing can be added to an expiry");
        return append(add_, name + " " + value(change));
      case Change::Kind::remove:
        return append(remove_, name);
    }
    HOLDFAST_ASSERT(false, "every kind of change is handled");
  }

  [[nodiscard]] std::string text() const {
    std::string text;
    for (const auto& [word, list] :
         {std::pair("SET ", &set_), std::pair("ADD ", &add_), std::pair("REMOVE ", &remove_)}) {
      if (!list->empty()) text.append(text.empty() ? "" : " ").append(word).append(*list);
    }
    return text;
  }

 private:
  static void append(std::string& list, const std::string& item) {
    list.append(list.empty() ? "" : ", ").append(item);
  }

  std::string value(const Change& change) {
    const bool is_expiry = change.attribute == attribute::expires_at && is_number(change.value);
    const auto ms = is_expiry ? whole_number(change.value) : std::nullopt;
    if (is_expiry && !ms) placeholders_.refuse("an expiry is a whole number of milliseconds");
    return placeholders_.of_value([&](std::string& out) {
      if (ms) {
        write_expiry(*ms, names_.expiry_unit(), out);
      } else {
        write_value(change.value, out);
      }
    });
  }

  const Names& names_;
  Placeholders& placeholders_;
  std::string set_, add_, remove_;
};

}  // namespace

Result<void> write_update(const Update& update, const Names& names, std::string& out) {
  Placeholders placeholders(names);
  ConditionWriter conditions(names, placeholders);
  Term condition = conditions.term(update.condition);
  if (condition.kind == Term::Kind::fails) {
    // Sent all the same: the answer is the row as it is.
    const std::string key = placeholders.of_theirs(names.key());
    condition = simple("attribute_exists(" + key + ") AND attribute_not_exists(" + key + ")");
  } else {
    std::vector<Term> terms{std::move(condition)};
    for (Term& bound : bounds_of_sums(update.changes, placeholders)) terms.push_back(std::move(bound));
    condition = combination(terms, true);
  }
  ChangeWriter changes(names, placeholders);
  for (const Change& change : update.changes) changes.add(change);
  if (placeholders.refused()) return tl::unexpected<Error>(*placeholders.refused());

  out.append(R"("Key":)");
  write_key(update.key, names, out);
  if (const std::string text = changes.text(); !text.empty()) {
    out.append(R"(,"UpdateExpression":")").append(text).append("\"");
  }
  if (!condition.is_known()) out.append(R"(,"ConditionExpression":")").append(condition.text).append("\"");
  placeholders.write(out);
  return {};
}

bool adds_past_the_end(const Update& update, const Row& row) {
  const auto past = [&](const Change& change) {
    const std::int64_t* amount = change.value.as_int();
    const Value* found = row.find(change.attribute);
    if (change.kind != Change::Kind::add || amount == nullptr || found == nullptr) return false;
    std::int64_t sum = 0;
    return found->as_int() != nullptr && __builtin_add_overflow(*found->as_int(), *amount, &sum);
  };
  return std::any_of(update.changes.begin(), update.changes.end(), past) && holds(update.condition, &row);
}

bool adds(const Update& update) {
  return std::any_of(update.changes.begin(), update.changes.end(),
                     [](const Change& change) { return change.kind == Change::Kind::add; });
}

}  // namespace holdfast::store::dynamodb
