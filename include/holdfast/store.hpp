#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/capacity.hpp"
#include "holdfast/error.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"
#include "holdfast/update.hpp"

namespace holdfast {

class Loop;

/// What became of a request (S5). A read is `applied`, `throttled`, `unknown` or `rejected`.
enum class Outcome {
  applied,    ///< it happened
  conflict,   ///< the condition did not hold; nothing happened
  throttled,  ///< the store refused for now (busy, over its rate); nothing happened
  unknown,    ///< timed out, connection lost, 5xx: it may have happened, or may still happen later
  rejected,   ///< it can never work as it is (no table, no permission, invalid); the error says what to do
};
[[nodiscard]] std::string_view to_string(Outcome outcome);

/// What a request came to. `error` is set for throttled, unknown and rejected; for a conflict that may be with an
/// earlier try of the same write; for an applied read of several rows of which one, that it names, is damaged.
template <class T>
struct Reply {
  Outcome outcome = Outcome::unknown;
  T value{};
  Error error{};
  [[nodiscard]] bool ok() const { return outcome == Outcome::applied; }
};

/// The row after the write if applied; the row as it was on conflict (nothing: there is none).
using RowReply = Reply<std::optional<Row>>;
using RowsReply = Reply<std::vector<Row>>;

struct Page {
  std::vector<Row> rows{};
  std::string next{};  ///< hand back as QueryDue::page to go on; empty: that was the last page
};
using PageReply = Reply<Page>;

struct QueryDue {
  std::string state{};      ///< desired_state equals this
  WallTime before{};        ///< lease_expires_at_ms below this; WallTime::max() for all
  std::size_t limit = 100;  ///< rows per page, at least 1
  std::string page{};
  WallTime from = WallTime::min();  ///< lease_expires_at_ms not below this
  Purpose purpose = Purpose::other;
};

struct Capabilities {
  std::string name{};                ///< for people: "sqlite (holdfast.db)"
  bool transactions = false;         ///< transact() works
  bool changes = false;              ///< changes() calls back; may become known, or another, while the store is open
  bool changes_need_reader = false;  ///< few can listen at once: one process should, and tell the others
  std::string no_changes{};          ///< why changes() does not call back and what to do, where that is known
  bool index_is_consistent = false;  ///< query_due() sees every write that was acknowledged before it
  bool returns_row_on_conflict = true;
  bool has_doubles = true;  ///< false: one type of number; a double without a fraction comes back as an integer
};

/// What changes() tells.
struct Changed {
  static constexpr std::size_t any = SIZE_MAX;
  /// So many rows may have become free or startable; `any`: it is not known, look at everything.
  std::size_t rows = any;
};
using ChangeListener = std::function<void(const Changed&)>;

template <class T>
using Handler = std::function<void(T)>;

/// The table. Every call returns at once; its handler runs exactly once, on the loop that the store was
/// opened with, never inside the call, at the latest soon after `deadline` (then: unknown, or throttled if it
/// surely never started). Calls are made from that loop's thread. The store must outlive its loop's handlers:
/// close() first; every handler still owed then runs (unknown) before close()'s own.
class Store {
 public:
  virtual ~Store() = default;

  /// Creates table and index where missing; does nothing where they are there. Gives what was done, in words.
  virtual void initialize(Instant deadline, Handler<Reply<std::string>> handler) = 0;

  virtual void get(std::string key, Instant deadline, Handler<RowReply> handler) = 0;  ///< consistent
  /// Rows that exist, in no promised order.
  virtual void batch_get(std::vector<std::string> keys, Instant deadline, Handler<RowsReply> handler) = 0;
  virtual void update(Update update, Instant deadline, Handler<RowReply> handler) = 0;
  /// All or none, 1 to 100 rows, each once; conflict where any condition fails. The rows after the writes, in the
  /// order of the updates; on conflict the rows as they were whose condition failed. Where the store has to read the
  /// rows afterwards (DynamoDB), others may have changed them since: then they are as they were left, one that was
  /// removed is missing, and if reading failed there are none and `error` is set; the transaction is applied all the
  /// same. `token`, at most 36 characters, makes a repeat within 10 minutes a no-op where the store can (DynamoDB's
  /// ClientRequestToken; memory and SQLite cannot).
  virtual void transact(std::vector<Update> updates, std::string token, Instant deadline,
                        Handler<RowsReply> handler) = 0;

  /// By expiry, earliest first; equal ones in no promised order. May be stale: a row found here is a hint (S8). Rows
  /// without the index's two attributes are not seen.
  virtual void query_due(QueryDue query, Instant deadline, Handler<PageReply> handler) = 0;
  /// Rows whose lease_owner is this. For repair and display, not for the hot path.
  virtual void query_owned(std::string owner, Instant deadline, Handler<RowsReply> handler) = 0;

  /// Calls back on the loop, at most every 100 ms, after rows may have changed (by anyone). Where telling of every
  /// write would be costly, a store leaves out those after which nobody can want the row for himself: held (each
  /// renewal), not to run, gone, a worker's own. At most one listener; an empty one ends it. Also called after
  /// `capabilities().changes` has become another; without the capability never else.
  virtual void changes(ChangeListener listener) = 0;

  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  /// What it was asked has cost so far, by kind. Empty where the store has no such thing as capacity.
  [[nodiscard]] virtual ConsumedByKind consumed() const { return {}; }
  virtual void close(std::function<void()> done) = 0;
};

/// Opens `sqlite:PATH` or `memory:`. A bad URL is Code::usage; a file that cannot be opened says why. Does not
/// create the table: that is initialize().
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const std::string& url, Loop& loop);

}  // namespace holdfast
