#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"
#include "holdfast/update.hpp"

namespace holdfast::cli {

// What the `conn` commands decide, as data: rows in, conditional writes and words out. No I/O.

/// Names are 1 to 200 bytes without blanks, control characters and those that mean something to a glob.
[[nodiscard]] Result<void> check_id(std::string_view id);
[[nodiscard]] std::string key_of(std::string_view id);
/// The connection's id; nothing where the row is another kind of row.
[[nodiscard]] std::optional<std::string> id_of(const Row& row);

/// Creates the connection, or brings back one that was removed and that nobody holds any more; its epoch goes on
/// (S3). `stream` is what StreamOptions::to_row() gives.
[[nodiscard]] Update add_connection(std::string_view id, const Attributes& stream, bool stopped, WallTime now);
/// Changes where an existing one connects to, and how. Its lease, epoch and last_seq stay.
[[nodiscard]] Update replace_connection(std::string_view id, const Attributes& stream, bool stopped);
/// Whether the row says what this add_connection() would have it say, whoever holds it by now: a worker takes a new
/// connection at once, also while the answer to whoever added it is on its way.
[[nodiscard]] bool says_as_added(const Row& row, const Update& add);
/// Why add_connection() met a conflict with this row, and what to do.
[[nodiscard]] Error explain_add_conflict(std::string_view id, const std::optional<Row>& row, WallTime now);

enum class Wanted { started, stopped, removed };

/// What it takes to bring a connection from where it is to where it is wanted.
struct Step {
  enum class Kind {
    write,    ///< carry `update` out
    nothing,  ///< it is there already
    refuse,   ///< `words` say why not
  };
  Kind kind = Kind::nothing;
  Update update;
  std::string words;      ///< "started", "is stopped already", …
  bool repaired = false;  ///< the row lacked what the index or a claim needs (F21)
};
/// `row` is as it was read: the write is conditional on it not having moved. `forget_at`: when the table may
/// forget a removed one's epoch; nothing: never.
[[nodiscard]] Step step_to(Wanted wanted, const Row& row, std::optional<WallTime> forget_at, WallTime now);

/// Makes a lease that ends far in the future end `lease` from now, or at once where nobody has it. `lease` is what
/// the workers run with, or more: then a holder that lives believes in nothing beyond it, and renews before (S1).
/// Conditional on the row as it was read.
[[nodiscard]] Step release(const Row& row, Duration lease, WallTime now);
/// A lease that ends further ahead than any usual one.
[[nodiscard]] bool is_far_ahead(const Row& row, WallTime now);

/// What only a person can mend.
struct Problem {
  std::string what, cure;
  bool stops_it = true;  ///< nobody can have the connection as it is
  [[nodiscard]] std::string words() const { return what + "; " + cure; }
};
/// What is wrong with the row's lease, its place in the index or its progress.
[[nodiscard]] std::optional<Problem> problem_of(const Row& row, std::string_view id, WallTime now);
/// What is wrong with its URL and options, for which it is parked; empty: nothing.
[[nodiscard]] std::string options_problem_of(const Row& row);

/// A connection's row for people and programs.
struct ConnectionView {
  std::string id, desired_state, url, owner;
  std::string status, reason;  ///< of its holder, as of the last renewal; empty where it is not held now
  std::string last_status;     ///< what the last holder said, where its lease ran out: F42
  std::int64_t epoch = 0, last_seq = 0, expires_at_ms = 0;
  enum class Lease { free, held, expired } lease = Lease::free;
  std::string problem;      ///< problem_of() in words
  std::string lease_words;  ///< "12 s left", "free", "expired 3 s ago"
};
[[nodiscard]] ConnectionView view_of(const Row& row, WallTime now);
/// Sorted as people expect: s2 before s10.
void sort_by_id(std::vector<Row>& rows);
[[nodiscard]] bool natural_less(std::string_view left, std::string_view right);

/// The row's options with `***` for the values of headers that are no references (env:, file:), and for all that is
/// in an option that nobody knows: it may be one of those, misspelt.
[[nodiscard]] Value::Map shown_options(const Row& row);

/// One line of an import: {"id","url","options":{…},"stopped"}. Code::usage with what is wrong with it.
struct ImportLine {
  std::string id;
  Attributes stream;
  bool stopped = false;
};
[[nodiscard]] Result<ImportLine> parse_import_line(std::string_view line);

}  // namespace holdfast::cli
