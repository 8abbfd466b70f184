#include "cli/doctor_rows.hpp"

#include <optional>
#include <utility>

#include "cli/connections.hpp"
#include "core/coord/counter.hpp"
#include "core/coord/damage.hpp"
#include "core/coord/decision.hpp"
#include "core/coord/names.hpp"
#include "core/coord/queue.hpp"
#include "core/coord/stock.hpp"
#include "core/coord/task_look.hpp"
#include "store/race.hpp"

namespace holdfast::cli {

namespace {

using store::Finding;
using store::Health;

constexpr std::size_t told_max = 20;

/// What keeps a row out of the index, in words; empty: nothing.
std::string lack_of(const Row& row) {
  const Value* state = row.find(attribute::desired_state);
  if (state == nullptr) return "has no desired_state";
  if (state->as_string() == nullptr) return "has a desired_state that is no text";
  const Value* expiry = row.find(attribute::expires_at);
  if (expiry == nullptr) return "has no lease_expires_at_ms";
  if (expiry->as_int() == nullptr) return "has a lease_expires_at_ms that is no whole number of 64 bits";
  return {};
}

std::optional<Finding> look_at(const Row& row, const std::string& id, WallTime now) {
  const std::string_view wanted = row.text(attribute::desired_state);
  Finding finding{.check = "row " + row.key, .health = Health::failed, .detail = {}, .advice = {}};
  if (wanted == state::removed) return std::nullopt;
  if (std::string lack = lack_of(row); !lack.empty()) {
    // Whoever stopped it may go on: only what is to run is missed.
    const bool stopped = wanted == state::stopped;
    if (stopped) finding.health = Health::warning;
    finding.detail = lack + ": the index cannot see it, so that " +
                     (stopped ? "'holdfast conn ls' does not list it" : "no worker ever finds it");
    finding.advice = "'holdfast conn start " + id + "' repairs it" + (stopped ? ", 'conn stop' then stops it" : "");
    return finding;
  }
  if (wanted != state::started && wanted != state::stopped) {
    finding.health = Health::warning;
    finding.detail = "its desired_state is neither STARTED, STOPPED nor REMOVED: no worker ever looks at it";
    finding.advice = "'holdfast conn start " + id + "' or 'conn stop " + id + "' sets it";
    return finding;
  }
  const auto problem = problem_of(row, id, now);
  if (!problem) return std::nullopt;
  if (!problem->stops_it) finding.health = Health::warning;
  finding.detail = problem->what;
  finding.advice = problem->cure;
  return finding;
}

/// Why nothing is done with a row of the coordinators, in words.
std::optional<std::string> damage_of_coordinators(const Row& row, WallTime now) {
  if (auto damage = damage_in(row)) return damage;
  const auto is = [&](std::string_view prefix) { return row.key.starts_with(prefix); };
  const bool is_good = is(coord::queue_prefix)                          ? group_in(row).has_value()
                       : is(coord::message_prefix)                      ? message_in(row).has_value()
                       : is(coord::decision_prefix)                     ? decided_in(row).has_value()
                       : is(coord::reservation_prefix)                  ? reservation_in(row) || was_precluded(row)
                       : is(key_prefix::task) || is(coord::once_prefix) ? task_in(row, now).has_value()
                                                                        : true;
  if (is_good) return std::nullopt;
  return "it lacks what its kind of rows has, or that is out of its bounds";
}

std::string rows(std::size_t count) {
  return count == 1 ? "1 row" : std::to_string(count) + " rows";
}

}  // namespace

void RowsExamined::take(const store::Walked& page, WallTime now) {
  for (const Row& row : page.rows) take(row, now);
  for (Finding finding : page.damaged) {
    ++rows_;
    finding.check.insert(0, "row ");
    note(std::move(finding));
  }
}

void RowsExamined::take(const Row& row, WallTime now) {
  if (row.key.starts_with(store::scratch_prefix)) return;  // doctor's own
  ++rows_;
  if (const auto damage = damage_of_coordinators(row, now)) {
    note({"row " + row.key, Health::failed, "is damaged, and nothing is done with it: " + *damage,
          "put the row right, or delete it"});
  }
  const auto id = id_of(row);
  if (!id) return;
  ++connections_;
  if (auto finding = look_at(row, *id, now)) note(std::move(*finding));
}

void RowsExamined::note(Finding finding) {
  if (++wrong_count_ <= told_max) wrong_.push_back(std::move(finding));
}

store::Findings RowsExamined::findings(const std::string& stopped_by) const {
  store::Findings result = wrong_;
  if (wrong_count_ > told_max) {
    result.push_back({"rows", Health::failed, "and " + std::to_string(wrong_count_ - told_max) + " more such rows",
                      "mend these, then run doctor again"});
  }
  const std::string seen = rows(rows_) + ", " + std::to_string(connections_) + " of connections";
  if (!stopped_by.empty()) {
    result.push_back({"rows", Health::warning, "looked at " + seen + ", not at all: " + stopped_by,
                      "run doctor with a longer --timeout or a larger --max-rows"});
  } else if (wrong_count_ == 0) {
    result.push_back({"rows", Health::ok, seen + ": the index sees all, and all can be read", ""});
  }
  return result;
}

}  // namespace holdfast::cli
