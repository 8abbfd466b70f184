#include "coord/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "store/json.hpp"
#include "store/sqlite/connection.hpp"
#include "store/utf8.hpp"

namespace holdfast::coord {

namespace {

using std::chrono::milliseconds;
using store::Connection;
using store::Sql;
using store::Statement;

constexpr int busy_wait_ms = 2000;
constexpr std::int64_t version = 1;
constexpr std::int64_t application_id = 0x48464a4c;  // "HFJL"

constexpr const char* schema_sql = R"(
  CREATE TABLE intents(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    ticket TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    arguments TEXT NOT NULL,
    accepted_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    compensation TEXT NOT NULL,
    begun_at_ms INTEGER NOT NULL,
    settled_at_ms INTEGER NOT NULL,
    note TEXT NOT NULL
  );
  CREATE INDEX intents_open ON intents(subject, seq) WHERE state IN ('accepted', 'begun');
  CREATE INDEX intents_to_do ON intents(seq)
    WHERE state IN ('accepted', 'begun') OR compensation IN ('due', 'begun');
  CREATE TABLE quotas(
    id TEXT NOT NULL PRIMARY KEY,
    basket TEXT NOT NULL,
    remaining TEXT NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    state TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE store(name TEXT NOT NULL);
  PRAGMA application_id = 1212566092;
  PRAGMA user_version = 1;
)";
static_assert(version == 1 && application_id == 1212566092, "as written above");

#define HOLDFAST_INTENT_COLUMNS                                                                                   \
  "seq, ticket, kind, arguments, accepted_at_ms, expires_at_ms, state, compensation, begun_at_ms, settled_at_ms," \
  " note "
constexpr const char* find_sql = "SELECT " HOLDFAST_INTENT_COLUMNS "FROM intents WHERE ticket = ?1";
constexpr const char* decision_sql = "SELECT " HOLDFAST_INTENT_COLUMNS
                                     "FROM intents WHERE subject = ?1 AND state IN ('accepted', 'begun')"
                                     " ORDER BY seq LIMIT 1";
constexpr const char* list_all_sql =
    "SELECT " HOLDFAST_INTENT_COLUMNS "FROM intents WHERE seq > ?1 ORDER BY seq LIMIT ?2";
constexpr const char* list_open_sql = "SELECT " HOLDFAST_INTENT_COLUMNS
                                      "FROM intents WHERE (state IN ('accepted', 'begun') OR compensation IN ('due', "
                                      "'begun')) AND seq > ?1 ORDER BY seq LIMIT ?2";
#undef HOLDFAST_INTENT_COLUMNS

std::int64_t ms(WallTime time) {
  return time.time_since_epoch().count();
}
WallTime time_of(std::int64_t count) {
  return WallTime(milliseconds(count));
}

tl::unexpected<store::Failure> failed(Code code, std::string detail) {
  return tl::unexpected(store::Failure{Outcome::rejected, {code, std::move(detail)}});
}

Sql<Basket> basket_in(std::string_view json) {
  const auto value = store::value_from_json(json);
  std::optional<Basket> basket = value ? basket_from(*value) : std::nullopt;
  if (!basket) return failed(Code::corrupt, "the journal has a quota that cannot be read");
  return *std::move(basket);
}

}  // namespace

struct Journal::Impl {
  explicit Impl(JournalOptions options_) : options(std::move(options_)) {}
  ~Impl() {
    if (lock >= 0) ::close(lock);
  }

  JournalOptions options;
  std::optional<Connection> connection;
  int lock = -1;

  [[nodiscard]] Sql<void> open();
  [[nodiscard]] Sql<void> make();
  [[nodiscard]] Sql<void> check_store();

  /// In one transaction. What `work` gives back as a failure leaves no trace.
  template <class T>
  [[nodiscard]] Sql<T> transaction(const std::function<Sql<T>()>& work);

  [[nodiscard]] Sql<Statement> prepare(const char* sql) const { return connection->prepare(sql); }
  [[nodiscard]] Sql<void> finish(Statement& statement) const {
    const int code = statement.step();
    if (code == SQLITE_DONE) return {};
    return tl::unexpected(connection->failure(code, "write to"));
  }
  [[nodiscard]] Sql<Intent> read_intent(Statement& statement) const;
  [[nodiscard]] Sql<std::vector<Intent>> read_intents(Statement& statement) const;
  [[nodiscard]] Sql<std::optional<Intent>> one_intent(const char* sql, const std::string& parameter) const;
  [[nodiscard]] Sql<Intent> insert(Intent intent) const;
  [[nodiscard]] Sql<void> update(const Intent& intent) const;
  [[nodiscard]] Sql<std::vector<Quota>> read_quotas() const;
  [[nodiscard]] Sql<void> write(const Quota& quota) const;
  [[nodiscard]] Sql<bool> change_quota(const std::string& id, const std::function<bool(Quota&)>& change);
  /// Whether some quota would do, if tickets did not have to be settled before its end.
  [[nodiscard]] Sql<bool> has_enough(const Intent& draft, WallTime now) const;
  /// The intent with its quota, from which it is taken; nothing: none has as much.
  [[nodiscard]] Sql<std::optional<Intent>> take_from_quota(Intent draft, const Limits& limits, WallTime now) const;
};

// ---- Opening ----

Sql<void> Journal::Impl::open() {
  auto opened = Connection::open(options.path, options.create);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  connection = std::move(*opened);
  sqlite3_busy_timeout(connection->get(), busy_wait_ms);
  const auto application = connection->number("PRAGMA application_id");
  if (!application) return tl::unexpected(application.error());
  const auto tables = connection->number("SELECT count(*) FROM sqlite_schema WHERE type = 'table'");
  if (!tables) return tl::unexpected(tables.error());
  if (*application != application_id && *tables > 0) {
    return failed(Code::usage, options.path + " is no journal but another database: give another path");
  }
  const auto found = connection->number("PRAGMA user_version");
  if (!found) return tl::unexpected(found.error());
  if (*found > version) {
    return failed(Code::usage, options.path + " was made by a newer holdfast (its format is " +
                                   std::to_string(*found) + ", this one knows " + std::to_string(version) +
                                   "): use that one");
  }
  const auto mode = connection->text("PRAGMA journal_mode = WAL");
  if (!mode) return tl::unexpected(mode.error());
  if (*mode != "wal") {
    return failed(Code::usage, "cannot use " + options.path + ": its file system has no shared memory for a" +
                                   " write-ahead log; put it on a local disk");
  }
  const std::string settings =
      "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;" +
      (options.pages_max > 0 ? "PRAGMA max_page_count = " + std::to_string(options.pages_max) : std::string());
  if (auto set = connection->run(settings.c_str()); !set) return set;
  if (*found == 0) {
    if (auto made = make(); !made) return made;
  }
  const auto sound = connection->text("PRAGMA quick_check(1)");
  if (!sound) return tl::unexpected(sound.error());
  if (*sound != "ok") {
    return failed(Code::corrupt, "the journal " + options.path + " is damaged (" + *sound +
                                     "): set it aside, and look with the sqlite3 program what of it can be read");
  }
  connection->know_log();
  return check_store();
}

Sql<void> Journal::Impl::make() {
  return transaction<void>([&]() -> Sql<void> {
    const auto found = connection->number("PRAGMA user_version");  // another process may have been faster
    if (!found) return tl::unexpected(found.error());
    if (*found != 0) return {};
    return connection->run(schema_sql);
  });
}

Sql<void> Journal::Impl::check_store() {
  if (options.store.empty()) return {};
  return transaction<void>([&]() -> Sql<void> {
    const auto known = connection->text("SELECT coalesce(max(name), '') FROM store");
    if (!known) return tl::unexpected(known.error());
    if (*known == options.store) return {};
    if (!known->empty()) {
      return failed(Code::usage, "the journal " + options.path + " is for the store " + *known + ", not for " +
                                     options.store + ": name that store, or another journal");
    }
    auto statement = prepare("INSERT INTO store(name) VALUES(?1)");
    if (!statement) return tl::unexpected(statement.error());
    statement->bind(1, std::string_view(options.store));
    return finish(*statement);
  });
}

template <class T>
Sql<T> Journal::Impl::transaction(const std::function<Sql<T>()>& work) {
  if (connection->moved() != Connection::Moved::no) {
    connection->leave_log();
    return failed(Code::corrupt, "the journal " + options.path +
                                     " was removed or replaced while it was in use: put it back and start again");
  }
  if (auto begun = connection->run("BEGIN IMMEDIATE"); !begun) return tl::unexpected(begun.error());
  Sql<T> result = work();
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

// ---- Rows ----

Sql<Intent> Journal::Impl::read_intent(Statement& statement) const {
  Intent intent;
  intent.seq = statement.number(0);
  intent.ticket = statement.text(1);
  const auto arguments = store::attributes_from_json(statement.text(3));
  std::optional<Wish> wish = arguments ? wish_from(statement.text(2), *arguments) : std::nullopt;
  const auto state = intent_state_from(statement.text(6));
  const auto compensation = compensation_from(statement.text(7));
  if (wish && state && compensation) {
    intent.wish = *std::move(wish);
    intent.accepted_at = time_of(statement.number(4));
    intent.expires_at = time_of(statement.number(5));
    intent.state = *state;
    intent.compensation = *compensation;
    intent.begun_at = time_of(statement.number(8));
    intent.settled_at = time_of(statement.number(9));
    intent.note = statement.text(10);
    if (is_sound(intent)) return intent;
  }
  return failed(Code::corrupt, "entry " + std::to_string(intent.seq) + " of the journal " + options.path +
                                   " cannot be read: look at it with the sqlite3 program");
}

Sql<std::vector<Intent>> Journal::Impl::read_intents(Statement& statement) const {
  std::vector<Intent> all;
  for (;;) {
    const int code = statement.step();
    if (code == SQLITE_DONE) return all;
    if (code != SQLITE_ROW) return tl::unexpected(connection->failure(code, "read"));
    auto intent = read_intent(statement);
    if (!intent) return tl::unexpected(std::move(intent.error()));
    all.push_back(*std::move(intent));
  }
}

Sql<std::optional<Intent>> Journal::Impl::one_intent(const char* sql, const std::string& parameter) const {
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(std::move(statement.error()));
  statement->bind(1, std::string_view(parameter));
  auto found = read_intents(*statement);
  if (!found) return tl::unexpected(std::move(found.error()));
  return found->empty() ? std::nullopt : std::optional(std::move(found->front()));
}

Sql<Intent> Journal::Impl::insert(Intent intent) const {
  auto statement = prepare(
      "INSERT INTO intents(ticket, kind, subject, arguments, accepted_at_ms, expires_at_ms, state, compensation,"
      " begun_at_ms, settled_at_ms, note) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
  if (!statement) return tl::unexpected(std::move(statement.error()));
  const std::string subject = subject_of(intent.wish);
  const std::string arguments = store::to_json(arguments_of(intent.wish));
  statement->bind(1, std::string_view(intent.ticket));
  statement->bind(2, kind_of(intent.wish));
  statement->bind(3, std::string_view(subject));
  statement->bind(4, std::string_view(arguments));
  statement->bind(5, ms(intent.accepted_at));
  statement->bind(6, ms(intent.expires_at));
  statement->bind(7, to_string(intent.state));
  statement->bind(8, to_string(intent.compensation));
  statement->bind(9, ms(intent.begun_at));
  statement->bind(10, ms(intent.settled_at));
  statement->bind(11, std::string_view(intent.note));
  if (auto done = finish(*statement); !done) return tl::unexpected(std::move(done.error()));
  intent.seq = sqlite3_last_insert_rowid(connection->get());
  return intent;
}

Sql<void> Journal::Impl::update(const Intent& intent) const {
  auto statement = prepare(
      "UPDATE intents SET state = ?2, compensation = ?3, begun_at_ms = ?4, settled_at_ms = ?5, note = ?6"
      " WHERE ticket = ?1");
  if (!statement) return tl::unexpected(std::move(statement.error()));
  statement->bind(1, std::string_view(intent.ticket));
  statement->bind(2, to_string(intent.state));
  statement->bind(3, to_string(intent.compensation));
  statement->bind(4, ms(intent.begun_at));
  statement->bind(5, ms(intent.settled_at));
  statement->bind(6, std::string_view(intent.note));
  return finish(*statement);
}

Sql<std::vector<Quota>> Journal::Impl::read_quotas() const {
  auto statement =
      prepare("SELECT id, basket, remaining, expires_at_ms, state FROM quotas ORDER BY expires_at_ms, id");
  if (!statement) return tl::unexpected(std::move(statement.error()));
  std::vector<Quota> all;
  for (;;) {
    const int code = statement->step();
    if (code == SQLITE_DONE) return all;
    if (code != SQLITE_ROW) return tl::unexpected(connection->failure(code, "read"));
    Quota quota;
    quota.id = statement->text(0);
    auto basket = basket_in(statement->text(1));
    if (!basket) return tl::unexpected(std::move(basket.error()));
    auto left = basket_in(statement->text(2));
    if (!left) return tl::unexpected(std::move(left.error()));
    const auto state = quota_state_from(statement->text(4));
    if (!state) return failed(Code::corrupt, "the journal has a quota in a state that is not known");
    quota.basket = *std::move(basket);
    quota.left = *std::move(left);
    quota.expires_at = time_of(statement->number(3));
    quota.state = *state;
    all.push_back(std::move(quota));
  }
}

Sql<void> Journal::Impl::write(const Quota& quota) const {
  auto statement = prepare(
      "INSERT INTO quotas(id, basket, remaining, expires_at_ms, state) VALUES(?1, ?2, ?3, ?4, ?5)"
      " ON CONFLICT(id) DO UPDATE SET remaining = ?3, expires_at_ms = ?4, state = ?5");
  if (!statement) return tl::unexpected(std::move(statement.error()));
  const std::string basket = store::to_json(value_of(quota.basket));
  const std::string left = store::to_json(value_of(quota.left));
  statement->bind(1, std::string_view(quota.id));
  statement->bind(2, std::string_view(basket));
  statement->bind(3, std::string_view(left));
  statement->bind(4, ms(quota.expires_at));
  statement->bind(5, to_string(quota.state));
  return finish(*statement);
}

Sql<bool> Journal::Impl::change_quota(const std::string& id, const std::function<bool(Quota&)>& change) {
  return transaction<bool>([&]() -> Sql<bool> {
    auto all = read_quotas();
    if (!all) return tl::unexpected(std::move(all.error()));
    const auto found = std::ranges::find(*all, id, &Quota::id);
    if (found == all->end() || !change(*found)) return false;
    if (auto written = write(*found); !written) return tl::unexpected(std::move(written.error()));
    return true;
  });
}

Sql<std::optional<Intent>> Journal::Impl::take_from_quota(Intent draft, const Limits& limits, WallTime now) const {
  auto* wish = std::get_if<DrawWish>(&draft.wish);
  if (wish == nullptr) return draft;
  auto all = read_quotas();
  if (!all) return tl::unexpected(std::move(all.error()));
  const auto found = std::ranges::find_if(
      *all, [&](const Quota& each) { return may_draw(each, wish->basket, now, limits.max_age); });
  if (found == all->end()) return std::nullopt;
  draw(*found, wish->basket);
  wish->quota = found->id;
  if (auto written = write(*found); !written) return tl::unexpected(std::move(written.error()));
  return draft;
}

Sql<bool> Journal::Impl::has_enough(const Intent& draft, WallTime now) const {
  const auto all = read_quotas();
  if (!all) return tl::unexpected(all.error());
  const Basket& basket = std::get<DrawWish>(draft.wish).basket;
  return std::ranges::any_of(*all, [&](const Quota& each) { return may_draw(each, basket, now, Duration::zero()); });
}

// ---- The journal ----

namespace {

template <class T>
Result<T> told(Sql<T> result) {
  if (!result) return tl::unexpected(std::move(result.error().error));
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(result);
  }
}

holdfast::Failure failure_of(store::Failure failure) {
  const bool unknown = failure.outcome == Outcome::unknown;
  return {unknown                                ? holdfast::Failure::Kind::unknown
          : failure.outcome == Outcome::rejected ? holdfast::Failure::Kind::rejected
                                                 : holdfast::Failure::Kind::unavailable,
          std::move(failure.error)};
}

bool is_utf8(const Intent& intent) {
  const std::string arguments = store::to_json(arguments_of(intent.wish));
  return store::is_utf8(intent.ticket) && store::is_utf8(arguments) && store::value_from_json(arguments).has_value();
}

}  // namespace

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Journal::~Journal() = default;

Result<std::unique_ptr<Journal>> Journal::open(JournalOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (!impl->options.create && ::access(impl->options.path.c_str(), F_OK) != 0) {
    return fail(Code::not_found, "there is no journal at " + impl->options.path);
  }
  if (auto opened = impl->open(); !opened) return tl::unexpected(std::move(opened.error().error));
  return std::unique_ptr<Journal>(new Journal(std::move(impl)));
}

const std::string& Journal::path() const {
  return impl_->options.path;
}

Ended<Journal::Appended> Journal::append(Intent draft, const Limits& limits, WallTime now) {
  using Kind = holdfast::Failure::Kind;
  const auto refused = [](Kind kind, Code code, std::string why) {
    return tl::unexpected(holdfast::Failure{kind, Error(code, std::move(why))});
  };
  if (const auto fault = fault_in(draft.wish)) return refused(Kind::rejected, Code::usage, *fault);
  if (const auto fault = fault_in_ticket(draft.ticket)) return refused(Kind::rejected, Code::usage, *fault);
  if (!is_utf8(draft)) {
    return refused(Kind::rejected, Code::usage, "a ticket, and all that is asked for under it, is UTF-8");
  }
  std::optional<holdfast::Failure> no;
  const auto say_no = [&](Kind kind, Code code, std::string why) -> Sql<Appended> {
    no = holdfast::Failure{kind, Error(code, std::move(why))};
    return failed(code, {});
  };
  Sql<Appended> done = impl_->transaction<Appended>([&]() -> Sql<Appended> {
    auto there = impl_->one_intent(find_sql, draft.ticket);
    if (!there) return tl::unexpected(std::move(there.error()));
    if (*there) {
      if (same_wish((*there)->wish, draft.wish)) return Appended{**std::move(there), true};
      return say_no(Kind::mismatch, Code::usage, "the ticket " + draft.ticket + " was used for something else");
    }
    if (std::holds_alternative<DecideWish>(draft.wish) && draft.state == Intent::State::accepted) {
      auto earlier = impl_->one_intent(decision_sql, subject_of(draft.wish));
      if (!earlier) return tl::unexpected(std::move(earlier.error()));
      if (*earlier) return Appended{**std::move(earlier), true};
    }
    const auto open = impl_->connection->number("SELECT count(*) FROM intents WHERE state IN ('accepted', 'begun')");
    if (!open) return tl::unexpected(open.error());
    if (*open >= static_cast<std::int64_t>(limits.open_most)) {
      return say_no(Kind::refused, Code::exhausted,
                    std::to_string(*open) + " provisional tickets wait to be reconciled, and no more are given out");
    }
    if (std::holds_alternative<DrawWish>(draft.wish)) {
      auto quotas = impl_->read_quotas();
      if (!quotas) return tl::unexpected(std::move(quotas.error()));
      // In the store both are reservations, under their names.
      if (std::ranges::find(*quotas, draft.ticket, &Quota::id) != quotas->end()) {
        return say_no(Kind::mismatch, Code::usage,
                      "the ticket " + draft.ticket + " is the name of a quota: a sale has one of its own");
      }
    }
    auto chosen = impl_->take_from_quota(draft, limits, now);
    if (!chosen) return tl::unexpected(std::move(chosen.error()));
    if (!*chosen) {
      auto left = impl_->has_enough(draft, now);
      if (!left) return tl::unexpected(std::move(left.error()));
      return say_no(
          Kind::refused, Code::exhausted,
          *left ? "what has as much left ends before a ticket would be too old (max_age): sell with a shorter "
                  "one, or set goods aside for longer"
                : "no quota has as much left");
    }
    auto written = impl_->insert(**std::move(chosen));
    if (!written) return tl::unexpected(std::move(written.error()));
    return Appended{*std::move(written), false};
  });
  if (no) return tl::unexpected(*std::move(no));
  if (!done) return tl::unexpected(failure_of(std::move(done.error())));
  return *std::move(done);
}

Result<std::optional<Intent>> Journal::find(const std::string& ticket) {
  return told(impl_->one_intent(find_sql, ticket));
}

Result<std::vector<Intent>> Journal::list(Which which, std::int64_t after, std::size_t limit) {
  auto statement = impl_->prepare(which == Which::all ? list_all_sql : list_open_sql);
  if (!statement) return tl::unexpected(std::move(statement.error().error));
  statement->bind(1, after);
  statement->bind(2, static_cast<std::int64_t>(limit));
  return told(impl_->read_intents(*statement));
}

Result<std::size_t> Journal::count_open() {
  auto count = impl_->connection->number(
      "SELECT count(*) FROM intents WHERE state IN ('accepted', 'begun') OR compensation IN ('due', 'begun')");
  if (!count) return tl::unexpected(std::move(count.error().error));
  return static_cast<std::size_t>(*count);
}

Result<bool> Journal::has_unsettled(const std::string& subject) {
  auto found = impl_->one_intent(decision_sql, subject);
  if (!found) return tl::unexpected(std::move(found.error().error));
  return found->has_value();
}

Result<void> Journal::put(const Intent& intent) {
  return told(impl_->transaction<void>([&]() -> Sql<void> {
    auto before = impl_->one_intent(find_sql, intent.ticket);
    if (!before) return tl::unexpected(std::move(before.error()));
    if (!*before) return failed(Code::not_found, "the ticket " + intent.ticket + " is no longer in the journal");
    const auto* wish = std::get_if<DrawWish>(&intent.wish);
    if (wish != nullptr && intent.state == Intent::State::rejected && !(*before)->is_settled()) {
      auto all = impl_->read_quotas();
      if (!all) return tl::unexpected(std::move(all.error()));
      const auto quota = std::ranges::find(*all, wish->quota, &Quota::id);
      if (quota != all->end() && quota->state != Quota::State::returned) {
        undraw(*quota, wish->basket);
        if (auto written = impl_->write(*quota); !written) return written;
      }
    }
    return impl_->update(intent);
  }));
}

Result<Quota> Journal::ask_quota(const Quota& quota) {
  return told(impl_->transaction<Quota>([&]() -> Sql<Quota> {
    auto all = impl_->read_quotas();
    if (!all) return tl::unexpected(std::move(all.error()));
    const auto there = std::ranges::find(*all, quota.id, &Quota::id);
    if (there != all->end()) return *there;
    if (auto written = impl_->write(quota); !written) return tl::unexpected(std::move(written.error()));
    return quota;
  }));
}

Result<bool> Journal::open_quota(const std::string& id, WallTime expires_at) {
  return told(impl_->change_quota(id, [&](Quota& quota) {
    if (quota.state != Quota::State::asked) return false;
    quota.state = Quota::State::open;
    quota.expires_at = expires_at;
    return true;
  }));
}

Result<bool> Journal::close_quota(const std::string& id) {
  return told(impl_->change_quota(id, [](Quota& quota) {
    if (quota.state != Quota::State::open) return false;
    quota.state = Quota::State::closing;
    return true;
  }));
}

Result<bool> Journal::end_quota(const std::string& id) {
  return told(impl_->change_quota(id, [](Quota& quota) {
    if (quota.state != Quota::State::asked && quota.state != Quota::State::closing) return false;
    quota.state = Quota::State::returned;
    quota.left.clear();
    return true;
  }));
}

Result<std::vector<Quota>> Journal::quotas() {
  return told(impl_->read_quotas());
}

Result<std::size_t> Journal::forget(WallTime before) {
  return told(impl_->transaction<std::size_t>([&]() -> Sql<std::size_t> {
    auto intents = impl_->prepare(
        "DELETE FROM intents WHERE settled_at_ms < ?1 AND (state = 'confirmed' OR compensation = 'done')");
    if (!intents) return tl::unexpected(std::move(intents.error()));
    intents->bind(1, ms(before));
    if (auto done = impl_->finish(*intents); !done) return tl::unexpected(std::move(done.error()));
    const auto forgotten = static_cast<std::size_t>(sqlite3_changes(impl_->connection->get()));
    auto quotas = impl_->prepare("DELETE FROM quotas WHERE expires_at_ms < ?1 AND state IN ('asked', 'returned')");
    if (!quotas) return tl::unexpected(std::move(quotas.error()));
    quotas->bind(1, ms(before));
    if (auto done = impl_->finish(*quotas); !done) return tl::unexpected(std::move(done.error()));
    return forgotten;
  }));
}

Result<bool> Journal::lock() {
  if (impl_->lock >= 0) return false;
  // A file of its own: closing any descriptor of the database would drop SQLite's locks on it.
  const std::string path = impl_->options.path + "-reconcile";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return fail(Code::denied, "cannot open " + path + ": " + std::strerror(errno));
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor);
    return false;
  }
  impl_->lock = descriptor;
  return true;
}

void Journal::unlock() {
  if (impl_->lock >= 0) ::close(std::exchange(impl_->lock, -1));
}

}  // namespace holdfast::coord
