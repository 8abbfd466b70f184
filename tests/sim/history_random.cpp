// The search against a slow judge that cannot be wrong, and against histories of a register that is right by
// construction, whole and with one corruption that cannot be right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "holdfast/random.hpp"
#include "sim/history/linearizability.hpp"

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;

Instant at(std::uint64_t ms) {
  return Instant(milliseconds(static_cast<std::int64_t>(ms)));
}

// ---- Small histories of anything, judged by trying every order ----

/// Every order and every choice of unknown updates: no cleverness.
bool some_order_explains(const History& history, const std::optional<Row>& row, std::vector<bool>& done) {
  const auto definite = [](const Operation& operation) { return operation.outcome != Outcome::unknown; };
  bool all_done = true;
  for (std::size_t i = 0; i < history.size(); ++i) all_done = all_done && (done[i] || !definite(history[i]));
  if (all_done) return true;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (done[i]) continue;
    bool too_early = false;
    for (std::size_t j = 0; j < history.size(); ++j) {
      too_early = too_early || (!done[j] && definite(history[j]) && history[j].returned < history[i].invoked);
    }
    if (too_early) continue;
    std::optional<Row> after = row;
    const Operation& operation = history[i];
    if (!operation.update) {
      if (!(operation.row == row)) continue;
    } else if (!holdfast::holds(operation.update->condition, row ? &*row : nullptr)) {
      if (operation.outcome != Outcome::conflict || !(operation.row == row)) continue;
    } else {
      if (operation.outcome == Outcome::conflict) continue;
      if (!after) after = Row{operation.key, {}};
      if (!holdfast::apply(operation.update->changes, *after)) continue;
      if (operation.outcome == Outcome::applied && !(operation.row == after)) continue;
    }
    done[i] = true;
    if (some_order_explains(history, after, done)) return true;
    done[i] = false;
  }
  return false;
}

std::optional<Row> any_row(Random& random) {
  const std::uint64_t x = random.below(4);
  return x == 3 ? std::nullopt : std::optional(Row{"r", {{"x", static_cast<int>(x)}}});
}

Update any_update(Random& random) {
  const auto value = [&] { return static_cast<int>(random.below(3)); };
  Update update{"r", {}, Condition::always()};
  update.changes = {random.below(4) == 0 ? Change::add("x", 1) : Change::set("x", value())};
  switch (random.below(4)) {
    case 0:
      update.condition = Condition::equals("x", value());
      break;
    case 1:
      update.condition = Condition::row_missing();
      break;
    case 2:
      update.condition = !Condition::equals("x", value());
      break;
    default:
      break;
  }
  return update;
}

Operation any_operation(Random& random) {
  Operation operation{"c", "r", at(random.below(12)), {}, std::nullopt, Outcome::applied, std::nullopt};
  operation.returned = operation.invoked + milliseconds(random.below(6));
  const std::uint64_t kind = random.below(10);
  if (kind >= 3) operation.update = any_update(random);
  if (kind >= 6) operation.outcome = kind < 8 ? Outcome::unknown : Outcome::conflict;
  if (operation.outcome != Outcome::unknown) operation.row = any_row(random);
  return operation;
}

TEST(RandomHistories, the_search_agrees_with_a_judge_that_tries_every_order) {
  int right = 0;
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    Random random(seed);
    History history;
    const std::uint64_t count = 1 + random.below(6);
    for (std::uint64_t i = 0; i < count; ++i) history.push_back(any_operation(random));
    const std::optional<Row> initial = any_row(random);
    std::vector<bool> done(history.size());
    const bool explained = some_order_explains(history, initial, done);
    (explained ? right : wrong) += 1;
    const Verdict verdict = linearize(history, initial).verdict;
    ASSERT_EQ(explained, verdict.good()) << "seed " << seed << "\n" << verdict.words;
    ASSERT_EQ(!explained, verdict.bad()) << "seed " << seed;
  }
  // Both kinds were really tried.
  EXPECT_GT(right, 1'000);
  EXPECT_GT(wrong, 2'000);
}

// ---- Long histories of a register that is right by construction ----

struct Clients {
  std::size_t count = 3;
  std::size_t operations = 200;
  std::uint64_t unknown_percent = 10;
  bool conditional = false;  // every update but the first few, as in the program
};

struct Effect {
  Instant at;
  std::size_t operation;
  bool operator<(const Effect& other) const { return at > other.at; }  // the earliest first
};

/// Every update adds one to `version` and leaves its own name in `by`: no two rows of a history are equal, except
/// those between which nothing happened.
Update some_update(Random& random, std::size_t number, std::int64_t version_seen) {
  Update update{"r", {Change::add("version", 1), Change::set("by", std::to_string(number))}, Condition::always()};
  if (random.below(2) == 0) update.condition = Condition::equals("version", version_seen);
  if (random.below(8) == 0) update.condition = Condition::exists("version") && std::move(update.condition);
  return update;
}

History recorded(Random& random, const Clients& clients) {
  History history;
  std::priority_queue<Effect> effects;
  std::vector<Instant> free_at(clients.count, at(0));
  // First when everything is sent and takes effect, ...
  for (std::size_t i = 0; i < clients.operations; ++i) {
    const std::size_t client = random.below(clients.count);
    Operation operation;
    operation.client = "c" + std::to_string(client);
    operation.key = "r";
    operation.invoked = free_at[client] + milliseconds(random.below(20));
    Instant effect = operation.invoked + milliseconds(random.below(10));
    operation.returned = effect + milliseconds(random.below(10));
    operation.outcome = Outcome::applied;
    if (random.below(100) < clients.unknown_percent) {
      operation.outcome = Outcome::unknown;
      effect += milliseconds(random.below(10) == 0 ? random.below(1000) : 0);
    }
    free_at[client] = operation.returned + milliseconds(1);
    const bool never = operation.outcome == Outcome::unknown && random.below(3) == 0;
    history.push_back(std::move(operation));
    if (!never) effects.push({effect, i});
  }
  // ... then what it comes to, in the order of the effects.
  std::optional<Row> row;
  std::int64_t version_seen = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (history[i].outcome == Outcome::unknown || random.below(3) != 0) {
      const auto version = static_cast<std::int64_t>(random.below(clients.operations));
      history[i].update = some_update(random, i, version);
      if (clients.conditional && i >= 10) history[i].update->condition = Condition::equals("version", version);
    }
  }
  for (; !effects.empty(); effects.pop()) {
    Operation& operation = history[effects.top().operation];
    if (operation.update) {
      Condition& condition = operation.update->condition;
      // Half of those that compare know the version.
      if (condition.kind == Condition::Kind::compare && random.below(2) == 0) condition.value = version_seen;
      const bool will = holds(condition, row ? &*row : nullptr);
      if (will) {
        if (!row) row = Row{"r", {}};
        EXPECT_TRUE(holdfast::apply(operation.update->changes, *row));
        version_seen = row->number("version");
      }
      if (operation.outcome != Outcome::unknown) operation.outcome = will ? Outcome::applied : Outcome::conflict;
    }
    if (operation.outcome != Outcome::unknown) operation.row = row;
  }
  return history;
}

TEST(RandomHistories, those_of_a_right_register_always_pass) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Clients clients{1 + random.below(5), 20 + random.below(200), random.below(15)};
    const Linearization found = linearize(recorded(random, clients));
    ASSERT_TRUE(found.verdict.good()) << "seed " << seed << "\n" << found.verdict.words;
  }
}

TEST(RandomHistories, the_order_that_is_found_explains_every_reply) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const History history = recorded(random, {3, 100, 20});
    const Linearization found = linearize(history);
    std::optional<Row> row;
    Instant latest = Instant::min();
    for (const std::size_t index : found.order) {
      const Operation& operation = history[index];
      if (operation.outcome == Outcome::applied && operation.update) {
        ASSERT_TRUE(holds(operation.update->condition, row ? &*row : nullptr));
      }
      if (operation.update && operation.outcome != Outcome::conflict) {
        if (!row) row = Row{"r", {}};
        ASSERT_TRUE(holdfast::apply(operation.update->changes, *row));
      }
      if (operation.outcome != Outcome::unknown) {
        ASSERT_EQ(operation.row, row);
        ASSERT_GE(operation.returned, latest) << "it returned before one that comes earlier was invoked";
      }
      latest = std::max(latest, operation.invoked);
    }
  }
}

TEST(RandomHistories, two_thousand_operations_need_few_configurations) {
  Random random(7);
  const History history = recorded(random, {5, 2'000, 10, true});
  const Linearization found = linearize(history);
  EXPECT_TRUE(found.verdict.good()) << found.verdict.words;
  EXPECT_LT(found.configurations, 40'000U);
}

// ---- One corruption that cannot be right ----

std::optional<std::size_t> pick(Random& random, const History& history, const auto& suits) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (suits(history[i])) found.push_back(i);
  }
  if (found.empty()) return std::nullopt;
  return found[random.below(found.size())];
}

bool is_write(const Operation& operation) {
  return operation.update && operation.outcome == Outcome::applied;
}
bool shows_a_row(const Operation& operation) {
  return operation.outcome != Outcome::unknown && operation.row;
}

/// A write that others saw is gone: its name is in a row, but nobody wrote it.
bool lose_a_write(Random& random, History& history) {
  const auto write = pick(random, history, [&](const Operation& operation) {
    return is_write(operation) && std::any_of(history.begin(), history.end(), [&](const Operation& other) {
             return &other != &operation && shows_a_row(other) && other.row == operation.row;
           });
  });
  if (write) history.erase(history.begin() + static_cast<std::ptrdiff_t>(*write));
  return write.has_value();
}

/// A read shows a row that had surely been overwritten before the read began: versions never come back.
bool make_a_read_stale(Random& random, History& history) {
  const auto is_read = [](const Operation& operation) { return !operation.update && shows_a_row(operation); };
  const auto read = pick(random, history, is_read);
  if (!read) return false;
  const auto older = pick(random, history, [&](const Operation& old) {
    return shows_a_row(old) && std::any_of(history.begin(), history.end(), [&](const Operation& overwrites) {
             return is_write(overwrites) && overwrites.returned < history[*read].invoked &&
                    overwrites.row->number("version") > old.row->number("version");
           });
  });
  if (older) history[*read].row = history[*older].row;
  return older.has_value();
}

/// Two writes are told that they made the same version.
bool give_a_version_twice(Random& random, History& history) {
  const auto first = pick(random, history, is_write);
  if (!first) return false;
  const auto second = pick(random, history, [&](const Operation& operation) {
    return is_write(operation) && &operation != &history[*first];
  });
  if (second) history[*second].row->attributes["version"] = *history[*first].row->find("version");
  return second.has_value();
}

/// A row is seen before the write that made it, answered or not, was invoked.
bool see_the_future(Random& random, History& history) {
  const auto seen =
      pick(random, history, [&](const Operation& operation) { return !operation.update && operation.row; });
  if (!seen) return false;
  const auto writer = static_cast<std::size_t>(std::stoull(std::string(history[*seen].row->text("by"))));
  history[*seen].returned = history[writer].invoked - milliseconds(1);
  history[*seen].invoked = history[*seen].returned - milliseconds(1);
  return true;
}

/// A write that changed the row says that it met a conflict, on the row that it left.
bool deny_a_write(Random& random, History& history) {
  const auto write = pick(random, history, [](const Operation& operation) {
    return is_write(operation) && operation.update->condition.kind == Condition::Kind::always;
  });
  if (write) history[*write].outcome = Outcome::conflict;
  return write.has_value();
}

TEST(RandomHistories, those_with_one_corruption_that_cannot_be_right_fail) {
  struct Corruption {
    const char* name;
    bool (*corrupt)(Random&, History&);
  };
  for (const auto& [name, corrupt] :
       {Corruption{"lost write", lose_a_write}, Corruption{"stale read", make_a_read_stale},
        Corruption{"version given twice", give_a_version_twice}, Corruption{"future seen", see_the_future},
        Corruption{"write denied", deny_a_write}}) {
    int corrupted = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      Random random(seed);
      History history = recorded(random, {1 + random.below(4), 20 + random.below(100), random.below(20)});
      if (!corrupt(random, history)) continue;
      ++corrupted;
      const Linearization found = linearize(history);
      ASSERT_TRUE(found.verdict.bad()) << name << ", seed " << seed << ": "
                                       << (found.verdict.good() ? "passed" : found.verdict.words);
    }
    EXPECT_GE(corrupted, 50) << name;
  }
}

}  // namespace
}  // namespace holdfast::sim
