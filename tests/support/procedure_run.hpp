#pragma once
#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/coord/procedure.hpp"
#include "holdfast/assert.hpp"
#include "support/lease_table.hpp"

namespace holdfast::test {

/// What can happen to one request on its way.
enum class Mishap {
  none,
  throttled,     ///< refused; nothing happened
  lost_request,  ///< unknown; nothing happened
  lost_reply,    ///< unknown; it happened
  late_request,  ///< unknown; it happens later, when arrive_late() is called
  twice,         ///< it happens, and once more when arrive_late() is called
  untold,        ///< it happens; of a transaction the rows could not be read afterwards
};
inline constexpr Mishap every_mishap[] = {Mishap::throttled,    Mishap::lost_request, Mishap::lost_reply,
                                          Mishap::late_request, Mishap::twice,        Mishap::untold};

/// Carries procedures out on a table in memory, one request at a time, in virtual time, with mishaps where the test
/// wants them. Each request takes a millisecond.
class ProcedureRun {
 public:
  explicit ProcedureRun(LeaseTable& table) : table_(table) {}

  /// What befalls the request with this number (from 0).
  std::function<Mishap(int request, bool is_write)> mishap = [](int, bool) { return Mishap::none; };
  Now now{Instant(std::chrono::seconds(1)), WallTime(std::chrono::milliseconds(1'700'000'000'000))};
  int requests = 0;
  int writes = 0;
  /// Rows that are there and cannot be read.
  std::set<std::string> damaged;

  void pass(Duration time) {
    now.instant += time;
    now.wall += std::chrono::duration_cast<std::chrono::milliseconds>(time);
  }

  /// One request, or one pause. False: it has ended.
  bool step(Procedure& procedure) {
    std::optional<Ask> ask = procedure.next(now);
    if (!ask) return false;
    if (const auto* pause = std::get_if<Pause>(&*ask)) {
      HOLDFAST_ASSERT(pause->until > now.instant && pause->until <= procedure.deadline(), "a pause is bounded");
      pass(std::chrono::ceil<std::chrono::milliseconds>(pause->until - now.instant));
      procedure.on(answer(Outcome::applied), now);
      return true;
    }
    Answer reply = request(*ask);
    pass(std::chrono::milliseconds(1));
    procedure.on(std::move(reply), now);
    return true;
  }

  /// To its end.
  void run(Procedure& procedure) {
    int steps = 0;
    while (step(procedure)) HOLDFAST_ASSERT(++steps < 100'000, "a procedure ends");
  }

  /// What was on its way arrives now.
  void arrive_late() {
    while (!late_.empty()) {
      (void)carry_out(late_.front());
      late_.pop_front();
    }
  }

 private:
  static Answer damage(Outcome outcome, std::vector<Row> rows, const std::string& key) {
    Answer told = answer(outcome, std::move(rows));
    told.error = Error(Code::corrupt, "the row " + key + " is damaged (no object)");
    return told;
  }

  static Answer answer(Outcome outcome, std::vector<Row> rows = {}) {
    Answer answer;
    answer.outcome = outcome;
    answer.rows = std::move(rows);
    if (outcome != Outcome::applied && outcome != Outcome::conflict) {
      answer.error = Error(Code::unavailable, "the store is away");
    }
    return answer;
  }

  Answer request(const Ask& ask) {
    const bool is_write = std::holds_alternative<WriteRow>(ask) || std::holds_alternative<WriteRows>(ask);
    const Mishap comes = mishap(requests++, is_write);
    if (is_write) ++writes;
    if (comes == Mishap::throttled) return answer(Outcome::throttled);
    if (comes == Mishap::lost_request) return answer(Outcome::unknown);
    if (!is_write) {
      const bool is_lost = comes == Mishap::lost_reply || comes == Mishap::late_request;
      return is_lost ? answer(Outcome::unknown) : look(ask);
    }
    const auto* one = std::get_if<WriteRow>(&ask);
    const std::vector<Update> updates = one != nullptr ? std::vector{one->update} : std::get<WriteRows>(ask).updates;
    for (const Update& each : updates) {
      if (damaged.contains(each.key)) return damage(Outcome::rejected, {}, each.key);
    }
    if (comes == Mishap::late_request || comes == Mishap::twice) late_.push_back(updates);
    if (comes == Mishap::late_request) return answer(Outcome::unknown);
    Answer done = carry_out(updates);
    if (comes == Mishap::untold && one == nullptr && done.outcome == Outcome::applied) done.rows.clear();
    return comes == Mishap::lost_reply ? answer(Outcome::unknown) : done;
  }

  /// Of one row it is an error that it is damaged; of several it is left out.
  Answer look(const Ask& ask) const {
    Answer seen = answer(Outcome::applied, read(ask));
    for (const std::string& key : damaged) {
      if (std::erase_if(seen.rows, [&](const Row& row) { return row.key == key; }) == 0) continue;
      const bool is_one = std::holds_alternative<ReadRow>(ask);
      seen = damage(is_one ? Outcome::rejected : Outcome::applied, std::move(seen.rows), key);
    }
    const auto* look = std::get_if<LookDue>(&ask);
    if (look == nullptr || seen.rows.size() <= look->query.limit) return seen;
    seen.rows.pop_back();
    seen.next = seen.rows.back().key;
    return seen;
  }

  /// Of what is due one more than was asked for, which tells whether there is another page. By key.
  std::vector<Row> read(const Ask& ask) const {
    std::vector<Row> rows;
    const auto take = [&](const std::string& key) {
      if (const Row* row = table_.find(key)) rows.push_back(*row);
    };
    if (const auto* one = std::get_if<ReadRow>(&ask)) take(one->key);
    if (const auto* many = std::get_if<ReadRows>(&ask)) std::ranges::for_each(many->keys, take);
    if (const auto* look = std::get_if<LookDue>(&ask)) {
      const std::int64_t before = look->query.before.time_since_epoch().count();
      for (const auto& [key, row] : table_.rows()) {
        if (row.text(attribute::desired_state) == look->query.state && row.number(attribute::expires_at) < before &&
            rows.size() <= look->query.limit && key > look->query.page) {
          rows.push_back(row);
        }
      }
    }
    return rows;
  }

  /// All or none, as transact() has it: on conflict the rows whose condition failed.
  Answer carry_out(const std::vector<Update>& updates) {
    std::vector<Row> rows;
    bool conflict = false;
    for (const Update& update : updates) {
      const Row* row = table_.find(update.key);
      if (holds(update.condition, row)) continue;
      conflict = true;
      if (row != nullptr) rows.push_back(*row);
    }
    if (conflict) return answer(Outcome::conflict, std::move(rows));
    for (const Update& update : updates) rows.push_back(table_.carry_out(update).row.value());
    return answer(Outcome::applied, std::move(rows));
  }

  LeaseTable& table_;
  std::deque<std::vector<Update>> late_;
};

}  // namespace holdfast::test
