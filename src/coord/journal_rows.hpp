#pragma once
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coord/journal.hpp"
#include "store/sqlite/connection.hpp"

namespace holdfast::coord {

// The file of a journal: its tables, and their rows as what they stand for.

#define HOLDFAST_INTENT_COLUMNS                                                                                   \
  "seq, ticket, kind, arguments, accepted_at_ms, expires_at_ms, state, compensation, begun_at_ms, settled_at_ms," \
  " note "
inline constexpr const char* find_sql = "SELECT " HOLDFAST_INTENT_COLUMNS "FROM intents WHERE ticket = ?1";
inline constexpr const char* decision_sql = "SELECT " HOLDFAST_INTENT_COLUMNS
                                            "FROM intents WHERE subject = ?1 AND state IN ('accepted', 'begun')"
                                            " ORDER BY seq LIMIT 1";
inline constexpr const char* list_all_sql =
    "SELECT " HOLDFAST_INTENT_COLUMNS "FROM intents WHERE seq > ?1 ORDER BY seq LIMIT ?2";
inline constexpr const char* list_open_sql =
    "SELECT " HOLDFAST_INTENT_COLUMNS
    "FROM intents WHERE (state IN ('accepted', 'begun') OR compensation IN ('due', "
    "'begun')) AND seq > ?1 ORDER BY seq LIMIT ?2";
#undef HOLDFAST_INTENT_COLUMNS

inline std::int64_t ms(WallTime time) {
  return time.time_since_epoch().count();
}

inline tl::unexpected<store::Failure> failed(Code code, std::string detail) {
  return tl::unexpected(store::Failure{Outcome::rejected, {code, std::move(detail)}});
}

struct Journal::Impl {
  explicit Impl(JournalOptions options_) : options(std::move(options_)) {}
  ~Impl() {
    if (lock >= 0) ::close(lock);
  }

  JournalOptions options;
  std::optional<store::Connection> connection;
  int lock = -1;
  std::string known_id;  // once it was asked for

  [[nodiscard]] store::Sql<void> open();
  [[nodiscard]] store::Sql<void> make();
  [[nodiscard]] store::Sql<void> check_store();
  [[nodiscard]] store::Sql<void> check_name(bool is_place_known);
  [[nodiscard]] store::Sql<bool> check_place();
  [[nodiscard]] store::Sql<std::string> fact(const std::string& name) const;
  [[nodiscard]] store::Sql<void> keep_fact(const std::string& name, const std::string& value) const;
  [[nodiscard]] store::Sql<std::string> identity();

  /// In one transaction. What `work` gives back as a failure leaves no trace.
  template <class T>
  [[nodiscard]] store::Sql<T> transaction(const std::function<store::Sql<T>()>& work);

  [[nodiscard]] store::Sql<store::Statement> prepare(const char* sql) const { return connection->prepare(sql); }
  [[nodiscard]] store::Sql<void> finish(store::Statement& statement) const {
    const int code = statement.step();
    if (code == SQLITE_DONE) return {};
    return tl::unexpected(connection->failure(code, "write to"));
  }
  [[nodiscard]] store::Sql<Intent> read_intent(store::Statement& statement) const;
  [[nodiscard]] store::Sql<std::vector<Intent>> read_intents(store::Statement& statement) const;
  [[nodiscard]] store::Sql<std::optional<Intent>> one_intent(const char* sql, const std::string& parameter) const;
  [[nodiscard]] store::Sql<Intent> insert(Intent intent) const;
  [[nodiscard]] store::Sql<void> update(const Intent& intent) const;
  [[nodiscard]] store::Sql<std::vector<Quota>> read_quotas() const;
  [[nodiscard]] store::Sql<void> write(const Quota& quota) const;
  [[nodiscard]] store::Sql<bool> change_quota(const std::string& id, const std::function<bool(Quota&)>& change);
  /// Whether some quota would do, if tickets did not have to be settled before its end.
  [[nodiscard]] store::Sql<bool> has_enough(const Intent& draft, WallTime now) const;
  /// The intent with its quota, from which it is taken; nothing: none has as much.
  [[nodiscard]] store::Sql<std::optional<Intent>> take_from_quota(Intent draft, const Limits& limits,
                                                                  WallTime now) const;
};

template <class T>
store::Sql<T> Journal::Impl::transaction(const std::function<store::Sql<T>()>& work) {
  if (connection->moved() != store::Connection::Moved::no) {
    connection->leave_log();
    return failed(Code::corrupt, "the journal " + options.path +
                                     " was removed or replaced while it was in use: put it back and start again");
  }
  if (auto begun = connection->run("BEGIN IMMEDIATE"); !begun) return tl::unexpected(begun.error());
  store::Sql<T> result = work();
  if (!result) {
    if (connection->in_transaction()) (void)connection->run("ROLLBACK");
    return result;
  }
  if (options.at_moment) options.at_moment(JournalOptions::Moment::before_commit);
  if (auto committed = connection->run("COMMIT"); !committed) {
    store::Failure failure = committed.error();
    if (connection->in_transaction()) (void)connection->run("ROLLBACK");
    failure.outcome = Outcome::unknown;
    failure.error.detail += "; it may stand in the journal all the same";
    return tl::unexpected(std::move(failure));
  }
  if (options.at_moment) options.at_moment(JournalOptions::Moment::after_commit);
  return result;
}

}  // namespace holdfast::coord
