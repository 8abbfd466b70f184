#include "coord/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "coord/journal_rows.hpp"
#include "core/utf8.hpp"
#include "store/json.hpp"

namespace holdfast::coord {

namespace {

using store::Sql;

tl::unexpected<holdfast::Failure> failure_of(store::Failure failure) {
  using Kind = holdfast::Failure::Kind;
  Kind kind = Kind::unavailable;
  if (failure.outcome == Outcome::unknown) kind = Kind::unknown;
  if (failure.outcome == Outcome::rejected) kind = Kind::rejected;
  return tl::unexpected(holdfast::Failure{kind, std::move(failure.error)});
}

template <class T>
Ended<T> told(Sql<T> result) {
  if (!result) return failure_of(std::move(result.error()));
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(result);
  }
}

bool is_utf8(const Intent& intent) {
  const std::string arguments = store::to_json(arguments_of(intent.wish));
  return holdfast::is_utf8(intent.ticket) && holdfast::is_utf8(arguments) &&
         store::value_from_json(arguments).has_value();
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
    if (std::holds_alternative<DecideWish>(draft.wish)) {
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
  return told(std::move(done));
}

Ended<std::optional<Intent>> Journal::find(const std::string& ticket) {
  return told(impl_->one_intent(find_sql, ticket));
}

Ended<std::vector<Intent>> Journal::list(Which which, std::int64_t after, std::size_t limit) {
  auto statement = impl_->prepare(which == Which::all ? list_all_sql : list_open_sql);
  if (!statement) return failure_of(std::move(statement.error()));
  statement->bind(1, after);
  statement->bind(2, static_cast<std::int64_t>(limit));
  return told(impl_->read_intents(*statement));
}

Ended<std::size_t> Journal::count_open() {
  auto count = impl_->connection->number(
      "SELECT count(*) FROM intents WHERE state IN ('accepted', 'begun') OR compensation IN ('due', 'begun')");
  if (!count) return failure_of(std::move(count.error()));
  return static_cast<std::size_t>(*count);
}

Ended<bool> Journal::has_unsettled(const std::string& subject) {
  auto found = impl_->one_intent(decision_sql, subject);
  if (!found) return failure_of(std::move(found.error()));
  return found->has_value();
}

Ended<void> Journal::put(const Intent& intent) {
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

Ended<std::string> Journal::identity() {
  return told(impl_->identity());
}

Ended<Quota> Journal::ask_quota(const Quota& quota) {
  bool is_sale = false;
  auto asked = impl_->transaction<Quota>([&]() -> Sql<Quota> {
    auto all = impl_->read_quotas();
    if (!all) return tl::unexpected(std::move(all.error()));
    const auto there = std::ranges::find(*all, quota.id, &Quota::id);
    if (there != all->end()) return *there;
    auto sale = impl_->one_intent(find_sql, quota.id);
    if (!sale) return tl::unexpected(std::move(sale.error()));
    if (*sale && std::holds_alternative<DrawWish>((*sale)->wish)) {
      is_sale = true;
      return failed(Code::usage, {});
    }
    if (auto written = impl_->write(quota); !written) return tl::unexpected(std::move(written.error()));
    return quota;
  });
  if (is_sale) {
    return tl::unexpected(holdfast::Failure{
        holdfast::Failure::Kind::mismatch,
        Error(Code::usage, "there is a sale under the ticket " + quota.id + ": a quota has a name of its own")});
  }
  return told(std::move(asked));
}

Ended<bool> Journal::drop_quota(const std::string& id) {
  return told(impl_->transaction<bool>([&]() -> Sql<bool> {
    auto quotas = impl_->prepare("DELETE FROM quotas WHERE id = ?1 AND state = 'asked'");
    if (!quotas) return tl::unexpected(std::move(quotas.error()));
    quotas->bind(1, std::string_view(id));
    if (auto done = impl_->finish(*quotas); !done) return tl::unexpected(std::move(done.error()));
    return sqlite3_changes(impl_->connection->get()) > 0;
  }));
}

Ended<bool> Journal::open_quota(const std::string& id, WallTime expires_at) {
  return told(impl_->change_quota(id, [&](Quota& quota) {
    if (quota.state != Quota::State::asked) return false;
    quota.state = Quota::State::open;
    quota.expires_at = expires_at;
    return true;
  }));
}

Ended<bool> Journal::close_quota(const std::string& id) {
  return told(impl_->change_quota(id, [](Quota& quota) {
    if (quota.state != Quota::State::open) return false;
    quota.state = Quota::State::closing;
    return true;
  }));
}

Ended<bool> Journal::end_quota(const std::string& id) {
  return told(impl_->change_quota(id, [](Quota& quota) {
    if (quota.state != Quota::State::closing) return false;
    quota.state = Quota::State::returned;
    quota.left.clear();
    return true;
  }));
}

Ended<std::vector<Quota>> Journal::quotas() {
  return told(impl_->read_quotas());
}

Ended<std::size_t> Journal::forget(WallTime before) {
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

Ended<bool> Journal::lock() {
  if (impl_->lock >= 0) return false;
  // A file of its own: closing any descriptor of the database would drop SQLite's locks on it. Beside the database
  // itself, as SQLite's own files are, whatever links lead to it.
  const std::string path = std::string(sqlite3_db_filename(impl_->connection->get(), "main")) + "-reconcile";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return tl::unexpected(holdfast::Failure{
        holdfast::Failure::Kind::rejected, Error(Code::denied, "cannot open " + path + ": " + std::strerror(errno))});
  }
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
