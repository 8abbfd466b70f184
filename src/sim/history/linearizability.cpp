#include "sim/history/linearizability.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "holdfast/assert.hpp"
#include "sim/history/row_table.hpp"

namespace holdfast::sim {

namespace {

using Index = std::uint32_t;
using Indexes = std::vector<Index>;  // ascending
using RowId = RowTable::Id;

constexpr Index none = std::numeric_limits<Index>::max();

/// Which operations are done and the row they left. The definite ones before `first` are all done.
struct Configuration {
  Index first = 0;
  Indexes beyond;   // definite ones done although an earlier one is not
  Indexes unknown;  // unknown ones that happened
  RowId row = 0;
  Index parent = none;
  Index by = none;    // the operation of the history that led here from the parent
  Index misfits = 0;  // unknown ones that left a row nobody saw, although somebody saw theirs: hardly true
};

/// A configuration to go on from: fewer misfits first, then more definite operations done, then fewer unknown ones,
/// so that the unknown ones are called upon only where nothing else explains a reply. The order decides only how soon
/// an explanation is found, not whether.
struct Pending {
  std::size_t misfits = 0;
  std::size_t definite_done = 0;
  std::size_t unknown_done = 0;
  bool unknown_next = false;  // its definite successors are done with
  Index configuration = 0;
  bool operator<(const Pending& other) const {
    return std::tuple(other.misfits, definite_done, other.unknown_done, other.unknown_next, other.configuration) <
           std::tuple(misfits, other.definite_done, unknown_done, unknown_next, configuration);
  }
};

bool contains(const Indexes& sorted, Index index) {
  return std::binary_search(sorted.begin(), sorted.end(), index);
}

Indexes with(const Indexes& sorted, Index index) {
  Indexes grown;
  grown.reserve(sorted.size() + 1);
  const auto place = std::lower_bound(sorted.begin(), sorted.end(), index);
  grown.insert(grown.end(), sorted.begin(), place);
  grown.push_back(index);
  grown.insert(grown.end(), place, sorted.end());
  return grown;
}

class Search {
 public:
  Search(const History& history, const std::optional<Row>& initial, SearchLimits limits);
  Linearization run();

 private:
  struct Definite {
    Index operation = 0;  // in the history
    RowId row = 0;        // that the reply has
  };

  [[nodiscard]] const Operation& definite(Index index) const { return history_[definite_[index].operation]; }
  [[nodiscard]] std::size_t definite_done(const Configuration& at) const { return at.first + at.beyond.size(); }
  [[nodiscard]] Instant horizon(const Configuration& at) const;
  [[nodiscard]] Indexes candidates(const Configuration& at, Instant horizon) const;
  bool expand_definite(Index from);
  void expand_unknown(Index from);
  void reach(Configuration next);
  void find_seen();
  [[nodiscard]] bool seen_better(std::uint64_t hash, const Configuration& next) const;
  [[nodiscard]] std::optional<RowId> explained(Index index, RowId row);
  [[nodiscard]] std::optional<RowId> effect(const Operation& operation, RowId row);

  [[nodiscard]] std::vector<std::size_t> order() const;
  [[nodiscard]] std::string fault() const;
  [[nodiscard]] std::string objection(Index index, RowId row) const;

  const History& history_;
  const SearchLimits limits_;
  RowTable rows_;
  std::vector<Definite> definite_;  // by invocation
  Indexes unknown_;                 // by invocation
  std::vector<bool> seen_;          // of unknown ones: whether a reply shows a text that they set
  RowId replied_rows_ = 0;          // rows below this are of replies
  std::vector<Configuration> configurations_;
  std::unordered_multimap<std::uint64_t, Index> by_hash_;  // looked up only, never walked
  std::priority_queue<Pending> pending_;
  std::size_t bytes_ = 0;
  std::size_t steps_ = 0;
  Index furthest_ = 0;
};

Search::Search(const History& history, const std::optional<Row>& initial, SearchLimits limits)
    : history_(history), limits_(limits) {
  HOLDFAST_ASSERT(history.size() < none, "a history fits into 32 bits");
  for (Index i = 0; i < history.size(); ++i) {
    const Operation& operation = history[i];
    HOLDFAST_ASSERT(operation.key == history.front().key, "one search is about one row");
    if (operation.outcome == Outcome::applied || operation.outcome == Outcome::conflict) {
      HOLDFAST_ASSERT(operation.returned >= operation.invoked, "an operation returns after its invocation");
      HOLDFAST_ASSERT(operation.update || operation.outcome == Outcome::applied, "a get meets no conflict");
      definite_.push_back({i, rows_.intern(operation.row)});
    } else if (operation.outcome == Outcome::unknown && operation.update) {
      unknown_.push_back(i);
    }
  }
  std::stable_sort(definite_.begin(), definite_.end(), [&](const Definite& left, const Definite& right) {
    return history_[left.operation].invoked < history_[right.operation].invoked;
  });
  std::stable_sort(unknown_.begin(), unknown_.end(),
                   [&](Index left, Index right) { return history_[left].invoked < history_[right].invoked; });
  replied_rows_ = static_cast<RowId>(rows_.size());
  find_seen();
  Configuration start;
  start.row = rows_.intern(initial);
  reach(std::move(start));
}

/// Texts, since what identifies a write (its attempt, its owner) is one; numbers recur by chance.
void Search::find_seen() {
  std::set<std::pair<std::string_view, std::string_view>> shown;
  for (RowId id = 0; id < replied_rows_; ++id) {
    if (!rows_.row(id)) continue;
    for (const auto& [name, value] : rows_.row(id)->attributes) {
      if (value.as_string() != nullptr) shown.emplace(name, *value.as_string());
    }
  }
  for (const Index index : unknown_) {
    const std::vector<Change>& changes = history_[index].update->changes;
    seen_.push_back(std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
      return change.value.as_string() != nullptr && shown.contains({change.attribute, *change.value.as_string()});
    }));
  }
}

Linearization Search::run() {
  Linearization result;
  while (!pending_.empty()) {
    const Pending next = pending_.top();
    pending_.pop();
    if (next.definite_done == definite_.size()) {
      furthest_ = next.configuration;  // what is unknown need not have happened
      result.order = order();
      result.configurations = configurations_.size();
      return result;
    }
    if (bytes_ + rows_.bytes() > limits_.bytes_max || steps_ > limits_.steps_max) {
      result.verdict =
          Verdict::give_up("gave up on " + history_.front().key + " after " + std::to_string(configurations_.size()) +
                           " configurations and " + std::to_string(steps_) + " steps: neither explained nor refuted");
      result.configurations = configurations_.size();
      return result;
    }
    if (!next.unknown_next && expand_definite(next.configuration)) {
      Pending later = next;
      later.unknown_next = true;
      pending_.push(later);
    } else {
      expand_unknown(next.configuration);
    }
  }
  result.configurations = configurations_.size();
  result.verdict = Verdict::fault(fault());
  return result;
}

/// The earliest return among the definite operations that are not done: whatever was invoked after it comes later.
Instant Search::horizon(const Configuration& at) const {
  Instant earliest = Instant::max();
  for (Index i = at.first; i < definite_.size() && definite(i).invoked <= earliest; ++i) {
    if (!contains(at.beyond, i)) earliest = std::min(earliest, definite(i).returned);
  }
  return earliest;
}

Indexes Search::candidates(const Configuration& at, Instant horizon) const {
  Indexes found;
  for (Index i = at.first; i < definite_.size() && definite(i).invoked <= horizon; ++i) {
    if (!contains(at.beyond, i)) found.push_back(i);
  }
  return found;
}

/// False: none of the operations that may come next explains its reply.
bool Search::expand_definite(Index from) {
  bool any = false;
  for (const Index index : candidates(configurations_[from], horizon(configurations_[from]))) {
    const std::optional<RowId> row = explained(index, configurations_[from].row);
    if (!row) continue;
    any = true;
    const Configuration& at = configurations_[from];
    Configuration next;
    next.first = at.first;
    next.unknown = at.unknown;
    next.misfits = at.misfits;
    next.row = *row;
    next.parent = from;
    next.by = definite_[index].operation;
    if (index == at.first) {
      ++next.first;
      auto kept = at.beyond.begin();
      for (; kept != at.beyond.end() && *kept == next.first; ++kept) ++next.first;
      next.beyond.assign(kept, at.beyond.end());
    } else {
      next.beyond = with(at.beyond, index);
    }
    reach(std::move(next));
  }
  return any;
}

void Search::expand_unknown(Index from) {
  const Instant end = horizon(configurations_[from]);
  for (Index i = 0; i < unknown_.size() && history_[unknown_[i]].invoked <= end; ++i) {
    if (contains(configurations_[from].unknown, i)) continue;
    const std::optional<RowId> row = effect(history_[unknown_[i]], configurations_[from].row);
    // Where it would change nothing it is the same as if it never happened.
    if (!row || *row == configurations_[from].row) continue;
    Configuration next = configurations_[from];
    next.unknown = with(next.unknown, i);
    next.row = *row;
    next.parent = from;
    next.by = unknown_[i];
    if (*row >= replied_rows_ && seen_[i]) ++next.misfits;
    reach(std::move(next));
  }
}

void Search::reach(Configuration next) {
  std::uint64_t hash = (next.first + 1) * 0x9e3779b97f4a7c15U + next.row;
  for (const Index index : next.beyond) hash = (hash ^ index) * 0xd6e8feb86659fd93U;
  if (seen_better(hash, next)) return;
  const Index id = static_cast<Index>(configurations_.size());
  pending_.push({next.misfits, definite_done(next), next.unknown.size(), false, id});
  by_hash_.emplace(hash, id);
  bytes_ +=
      sizeof(Configuration) + 2 * sizeof(Pending) + 64 + sizeof(Index) * (next.beyond.size() + next.unknown.size());
  const bool further = configurations_.empty() || definite_done(next) > definite_done(configurations_[furthest_]);
  configurations_.push_back(std::move(next));
  if (further) furthest_ = id;
}

/// Whether a configuration is known that differs at most in that fewer unknown operations happened: whatever can
/// follow on `next` can follow on that one, too.
bool Search::seen_better(std::uint64_t hash, const Configuration& next) const {
  const auto [first, last] = by_hash_.equal_range(hash);
  return std::any_of(first, last, [&](const auto& entry) {
    const Configuration& known = configurations_[entry.second];
    return known.first == next.first && known.row == next.row && known.beyond == next.beyond &&
           std::includes(next.unknown.begin(), next.unknown.end(), known.unknown.begin(), known.unknown.end());
  });
}

/// The row after a definite operation, if its reply can be what it does on this row.
std::optional<RowId> Search::explained(Index index, RowId row) {
  const Operation& operation = definite(index);
  const RowId replied = definite_[index].row;
  if (!operation.update) return replied == row ? std::optional(row) : std::nullopt;
  if (operation.outcome == Outcome::conflict) {
    ++steps_;
    const std::optional<Row>& now = rows_.row(row);
    const bool explains = replied == row && !holds(operation.update->condition, now ? &*now : nullptr);
    return explains ? std::optional(row) : std::nullopt;
  }
  const std::optional<RowId> after = effect(operation, row);
  return after == replied ? after : std::nullopt;
}

/// The row after an update; nothing where the update does nothing.
std::optional<RowId> Search::effect(const Operation& operation, RowId row) {
  ++steps_;
  const std::optional<Row>& now = rows_.row(row);
  if (!holds(operation.update->condition, now ? &*now : nullptr)) return std::nullopt;
  std::optional<Row> after = now ? now : Row{operation.key, {}};
  if (!apply(operation.update->changes, *after)) return std::nullopt;
  return rows_.intern(after);
}

// ---- What is told ----

std::vector<std::size_t> Search::order() const {
  std::vector<std::size_t> found;
  for (Index at = furthest_; configurations_[at].parent != none; at = configurations_[at].parent) {
    found.push_back(configurations_[at].by);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

std::string Search::fault() const {
  const Configuration& at = configurations_[furthest_];
  const Instant end = horizon(at);
  const Indexes next = candidates(at, end);
  std::string words = "no order of the operations on " + history_.front().key +
                      " explains the replies: " + std::to_string(definite_done(at)) + " of " +
                      std::to_string(definite_.size()) + " were explained, then none of these could come next";
  words += "\n  the row then: " + in_words(rows_.row(at.row));
  if (const auto before = order(); !before.empty()) words += "\n  left by: " + in_words(history_[before.back()]);
  for (const Index index : next) {
    words += "\n  - " + in_words(definite(index)) + "\n    but " + objection(index, at.row);
  }
  const auto open = std::count_if(unknown_.begin(), unknown_.end(),
                                  [&](Index operation) { return history_[operation].invoked <= end; });
  words += "\n  Other orders, and " + std::to_string(open) +
           " updates without a reply by then, were tried: " + std::to_string(configurations_.size()) +
           " configurations.";
  return words;
}

std::string Search::objection(Index index, RowId id) const {
  const Operation& operation = definite(index);
  const std::optional<Row>& row = rows_.row(id);
  if (!operation.update) return "the row was another";
  const bool condition_holds = holds(operation.update->condition, row ? &*row : nullptr);
  if (operation.outcome == Outcome::conflict) {
    return condition_holds ? "its condition holds on that row" : "the row was another";
  }
  if (!condition_holds) return "its condition does not hold on that row";
  Row after = row ? *row : Row{operation.key, {}};
  if (!apply(operation.update->changes, after)) return "its changes cannot be made to that row";
  return definite_[index].row == id && !(operation.row == after)
             ? "it left the row as it was"
             : "it would have left " + in_words(std::optional<Row>(after));
}

}  // namespace

Linearization linearize(const History& history, const std::optional<Row>& initial, SearchLimits limits) {
  if (history.empty()) return {};
  return Search(history, initial, limits).run();
}

Verdict check_linearizable(const History& history, const std::map<std::string, Row>& initial, SearchLimits limits) {
  std::map<std::string, History> by_key;
  for (const Operation& operation : history) by_key[operation.key].push_back(operation);
  Verdict undecided;
  for (const auto& [key, operations] : by_key) {
    const auto known = initial.find(key);
    Verdict verdict =
        linearize(operations, known == initial.end() ? std::nullopt : std::optional(known->second), limits).verdict;
    if (verdict.bad()) return verdict;
    if (!verdict.good() && undecided.good()) undecided = std::move(verdict);
  }
  return undecided;
}

}  // namespace holdfast::sim
