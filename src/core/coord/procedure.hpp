#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "holdfast/coordination.hpp"
#include "holdfast/error.hpp"
#include "holdfast/row.hpp"
#include "holdfast/store.hpp"
#include "holdfast/types.hpp"
#include "holdfast/update.hpp"

namespace holdfast {

// What a coordinator asks its shell to do next: a request to the store, or to let time pass.
struct ReadRow {
  std::string key;
};
struct ReadRows {
  std::vector<std::string> keys;
};
struct WriteRow {
  Update update;
};
struct WriteRows {
  std::vector<Update> updates;
  std::string token;  ///< the same in every try
};
struct LookDue {
  QueryDue query;
};
struct Pause {
  Instant until{};
  bool until_changed = false;  ///< or until the store tells that rows have changed, where it does
};
using Ask = std::variant<ReadRow, ReadRows, WriteRow, WriteRows, LookDue, Pause>;

/// What an Ask came to. After a Pause: applied.
struct Answer {
  Outcome outcome = Outcome::unknown;
  std::vector<Row> rows;  ///< of a single row: the row, or none where there is none
  std::string next;       ///< of a look: the next page
  Error error;

  [[nodiscard]] const Row* row() const { return rows.empty() ? nullptr : &rows.front(); }
  /// Of a read of several rows: one of them is damaged, and not among `rows`; `error` names it.
  [[nodiscard]] bool lacks_damaged() const { return outcome == Outcome::applied && !error.detail.empty(); }
};

/// One operation of a coordinator (decide, acquire, reserve, …), as pure rules: time and answers go in, what to do
/// next comes out. No I/O, no clock; randomness only from the generator handed in. Not thread-safe.
///
/// The shell: `while (auto ask = procedure.next(now)) procedure.on(carry_out(*ask), now)`, with the clocks read anew
/// for each call: a write that is asked for leaves after that reading, and beliefs count from it (S4). It ends by
/// itself soon after its deadline, whatever the store does, if every ask is answered by that deadline (S10).
class Procedure {
 public:
  virtual ~Procedure() = default;
  /// Nothing: it has ended, and the result is there.
  [[nodiscard]] virtual std::optional<Ask> next(Now now) = 0;
  /// What the latest ask came to.
  virtual void on(Answer answer, Now now) = 0;
  /// When a request must be answered: no later.
  [[nodiscard]] virtual Instant deadline() const = 0;
};

/// Whether somebody still waits for what a procedure waits for. Asked on the loop; empty: always.
using IsWanted = std::function<bool()>;

/// Nobody waits for it any more: it ended before its time.
[[nodiscard]] Failure not_wanted();

/// A row that is not as its kind of rows are: nothing is done with it.
[[nodiscard]] Failure damaged_row(std::string_view key);

}  // namespace holdfast
