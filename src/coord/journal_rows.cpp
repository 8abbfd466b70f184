#include "coord/journal_rows.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>

#include "core/utf8.hpp"
#include "store/json.hpp"

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
/// What a journal knows besides, made where it is missing: a program of before that does without.
constexpr const char* facts_sql = R"(
  CREATE TABLE IF NOT EXISTS facts(name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  INSERT OR IGNORE INTO facts(name, value) VALUES('id', lower(hex(randomblob(16))));
)";
static_assert(version == 1 && application_id == 1212566092, "as written above");

WallTime time_of(std::int64_t count) {
  return WallTime(milliseconds(count));
}

Sql<Basket> basket_in(std::string_view json) {
  const auto value = store::value_from_json(json);
  std::optional<Basket> basket = value ? basket_from(*value) : std::nullopt;
  if (!basket) return failed(Code::corrupt, "the journal has a quota that cannot be read");
  return *std::move(basket);
}

}  // namespace

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
    if (options.place.empty()) return check_name(false);
    if (auto made = connection->run(facts_sql); !made) return made;
    const auto is_known = check_place();
    if (!is_known) return tl::unexpected(is_known.error());
    if (auto named = check_name(*is_known); !named) return named;
    for (const auto& [name, value] : options.place) {
      if (auto kept = keep_fact(name, value); !kept) return kept;
    }
    return {};
  });
}

/// As it was written at first. Where it is known what it comes to, it is for people.
Sql<void> Journal::Impl::check_name(bool is_place_known) {
  const auto known = connection->text("SELECT coalesce(max(name), '') FROM store");
  if (!known) return tl::unexpected(known.error());
  if (*known == options.store || (is_place_known && !known->empty())) return {};
  if (!known->empty()) {
    return failed(Code::usage, "the journal " + options.path + " is for the store " + *known + ", not for " +
                                   options.store + ": name that store, or another journal");
  }
  auto statement = prepare("INSERT INTO store(name) VALUES(?1)");
  if (!statement) return tl::unexpected(statement.error());
  statement->bind(1, std::string_view(options.store));
  return finish(*statement);
}

/// Whether something is known of it, and all that is known is the same.
Sql<bool> Journal::Impl::check_place() {
  bool is_known = false;
  for (const auto& [name, value] : options.place) {
    const auto known = fact("store_" + name);
    if (!known) return tl::unexpected(known.error());
    if (known->empty()) continue;
    is_known = true;
    if (*known == value) continue;
    return failed(Code::usage, "the journal " + options.path + " is for the store with the " + name + " " + *known +
                                   ", not for that with " + value + " (" + options.store +
                                   "): name that store, or another journal");
  }
  return is_known;
}

Sql<std::string> Journal::Impl::fact(const std::string& name) const {
  auto statement = prepare("SELECT value FROM facts WHERE name = ?1");
  if (!statement) return tl::unexpected(std::move(statement.error()));
  statement->bind(1, std::string_view(name));
  const int code = statement->step();
  if (code == SQLITE_DONE) return std::string();
  if (code != SQLITE_ROW) return tl::unexpected(connection->failure(code, "read"));
  return std::string(statement->text(0));
}

Sql<void> Journal::Impl::keep_fact(const std::string& name, const std::string& value) const {
  auto statement = prepare("INSERT OR IGNORE INTO facts(name, value) VALUES(?1, ?2)");
  if (!statement) return tl::unexpected(std::move(statement.error()));
  const std::string kept = "store_" + name;
  statement->bind(1, std::string_view(kept));
  statement->bind(2, std::string_view(value));
  return finish(*statement);
}

Sql<std::string> Journal::Impl::identity() {
  if (!known_id.empty()) return known_id;
  auto found = transaction<std::string>([&]() -> Sql<std::string> {
    if (auto made = connection->run(facts_sql); !made) return tl::unexpected(made.error());
    return connection->text("SELECT value FROM facts WHERE name = 'id'");
  });
  if (found) known_id = *found;
  return found;
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

}  // namespace holdfast::coord
