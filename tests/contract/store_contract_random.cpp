// Conditions and changes of every shape: each store comes to what holds() and apply() come to in C++.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "holdfast/random.hpp"
#include "store/json.hpp"
#include "store/rows.hpp"
#include "store_contract.hpp"

namespace holdfast::test {
namespace {

constexpr int cases = 300;

/// Small pools, so that what is compared is often equal, missing, or of another type.
class Inventor {
 public:
  explicit Inventor(std::uint64_t seed) : random_(seed) {}

  std::int64_t number() {
    constexpr std::int64_t numbers[] = {
        -1, 0, 1, 2, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
    return numbers[random_.below(std::size(numbers))];
  }
  Value value(const std::string& attribute) {
    if (attribute == attribute::expires_at) return number();  // an index has one type
    switch (random_.below(9)) {
      case 0:
        return nullptr;
      case 1:
        return random_.below(2) == 0;
      case 2:
        return Value::List{number(), "x"};
      case 3:
        return Value::Map{{"m", number()}};
      case 4:
      case 5:
        return std::string(random_.below(3), 'a');
      default:
        return number();
    }
  }
  std::string name() { return names[random_.below(std::size(names))]; }

  std::optional<Row> row() {
    if (random_.below(5) == 0) return std::nullopt;
    Row row{"k", {}};
    for (const char* each : names) {
      if (random_.below(3) > 0) row.attributes.emplace(each, value(each));
    }
    return row;
  }

  Condition condition(int depth = 0) {
    switch (random_.below(depth < 3 ? 9 : 6)) {
      case 0:
        return random_.below(4) == 0 ? Condition::always() : Condition::row_exists();
      case 1:
        return Condition::exists(name());
      case 2:
        return Condition::not_exists(name());
      case 6:
        return !condition(depth + 1);
      case 7:
        return condition(depth + 1) && condition(depth + 1);
      case 8:
        return condition(depth + 1) || condition(depth + 1);
      default:
        break;
    }
    const std::string attribute = name();
    return Condition::is(attribute, static_cast<Condition::Compare>(random_.below(6)), value(attribute));
  }

  std::vector<Change> changes() {
    std::vector<Change> changes;
    for (const char* each : names) {
      switch (random_.below(6)) {
        case 0:
          changes.push_back(Change::set(each, value(each)));
          break;
        case 1:
          changes.push_back(Change::set_if_absent(each, value(each)));
          break;
        case 2:
          changes.push_back(Change::remove(each));
          break;
        case 3:
          // Nothing of ours adds to an expiry.
          if (each != attribute::expires_at) changes.push_back(Change::add(each, number()));
          break;
        default:
          break;
      }
    }
    return changes;
  }

 private:
  static constexpr const char* names[] = {"a", "b", "lease_owner", "lease_expires_at_ms"};
  Random random_;
};

std::string words(const std::optional<Row>& row) {
  return row ? store::to_json(row->attributes) : "no row";
}

TEST_P(StoreContract, every_update_comes_to_what_the_rules_of_the_algebra_say) {
  Inventor inventor(7);
  for (int i = 0; i < cases; ++i) {
    const std::string key = "k" + std::to_string(i);
    std::optional<Row> before = inventor.row();
    if (before) {
      before->key = key;
      ASSERT_EQ(store_.put(key, before->attributes).value, before) << words(before);
    }
    const Update update{key, inventor.changes(), inventor.condition()};
    const RowReply expected = store::decide(update, before);
    const RowReply reply = store_.update(update);
    ASSERT_EQ(reply.outcome, expected.outcome) << "case " << i << ": " << words(before) << "; " << reply.error.detail;
    if (expected.outcome != Outcome::rejected) {
      ASSERT_EQ(words(reply.value), words(expected.value)) << "case " << i << ": from " << words(before);
    }
    const std::optional<Row> after = expected.ok() ? expected.value : before;
    ASSERT_EQ(words(store_.get(key).value), words(after)) << "case " << i;
  }
}

}  // namespace
}  // namespace holdfast::test
