#include "store/sqlite/sqlite_worker.hpp"

#include <algorithm>
#include <iterator>

namespace holdfast::store {

namespace {

using namespace std::chrono_literals;

// How long to leave a lock alone that somebody else holds: their transactions take about as long as ours.
constexpr Duration backoff_first = 500us;
constexpr Duration backoff_max = 16ms;
constexpr Duration look_every = 100ms;
constexpr Duration purge_every = 10min;
// Others who were seen at the lock are reckoned with for so long.
constexpr Duration polite_for = 500ms;
constexpr Duration polite_from = 1ms;

bool is_initialize(const Operation& operation) {
  return std::holds_alternative<Initialize>(operation.request);
}

/// True where the operation is this thread's to carry out, be it since just now.
bool claim(Operation& operation) {
  return operation.begin() || !operation.withdrawn();
}

}  // namespace

SqliteWorker::SqliteWorker(SqliteTable table, Loop& loop, ChangeFeed& feed, std::function<void(Answered)> answered,
                           std::function<void()> ended)
    : loop_(loop),
      feed_(feed),
      answered_(std::move(answered)),
      ended_(std::move(ended)),
      table_(std::move(table)),
      random_(loop.random().next()),
      thread_("store", [this] { run(); }) {}

SqliteWorker::~SqliteWorker() {
  stop();
}

std::vector<std::shared_ptr<Operation>> SqliteWorker::submit(std::vector<std::shared_ptr<Operation>> operations) {
  mailbox_.push_all(operations);
  return operations;
}

void SqliteWorker::stop() {
  mailbox_.close();
}

void SqliteWorker::run() {
  std::vector<std::shared_ptr<Operation>> arrived;
  seen_version_ = table_.data_version();
  while (mailbox_.take(arrived, queue_max, pause())) {
    std::move(arrived.begin(), arrived.end(), std::back_inserter(waiting_));
    arrived.clear();
    drop_overdue();
    if (!waiting_.empty() && ready()) serve();
    if (feed_.has_listener() && loop_.instant() >= look_after_) look_for_changes();
    deliver();
  }
  table_.close();
  ended_();
}

/// How long the thread may sleep if nothing arrives.
Duration SqliteWorker::pause() const {
  const Instant now = loop_.instant();
  Duration pause = 1h;
  if (!waiting_.empty()) pause = std::min(pause, write_after_ - now);
  if (feed_.has_listener()) pause = std::min(pause, look_after_ - now);
  return std::max(pause, Duration::zero());
}

Error SqliteWorker::overdue() const {
  const Obstacle obstacle = obstacle_.load(std::memory_order_relaxed);
  const char* why = obstacle == Obstacle::lock   ? ": another process holds its write lock"
                    : obstacle == Obstacle::away ? ": it was moved away or deleted, put it back"
                                                 : ": it is behind with its work";
  return {Code::unavailable, table_.path() + " could not begin it within its deadline" + why};
}

/// What waits past its deadline is given up by the loop's timer; this is for a loop that is late.
void SqliteWorker::drop_overdue() {
  const Instant now = loop_.instant();
  const auto is_done_for = [&](const std::shared_ptr<Operation>& operation) {
    if (operation->deadline <= now && operation->withdraw()) {
      answer(operation, operation->failure(Outcome::throttled, overdue()));
    }
    return operation->withdrawn();
  };
  std::erase_if(waiting_, is_done_for);
}

/// Opens the table where it is closed. What cannot work without one is answered.
bool SqliteWorker::ready() {
  const bool was_open = table_.is_open();
  initialize_all();
  if (waiting_.empty()) return false;
  const auto opened = table_.open();
  if (opened) {
    if (!was_open) {
      obstacle_.store(Obstacle::none, std::memory_order_relaxed);
      seen_version_ = table_.data_version();
      feed_.touch();  // nobody knows what happened in between
    }
    if (loop_.instant() >= purge_after_) purge();
    return true;
  }
  if (opened.error().busy) {
    wait_for_lock();
  } else {
    if (opened.error().outcome == Outcome::throttled) obstacle_.store(Obstacle::away, std::memory_order_relaxed);
    fail_waiting(opened.error(), [](const Operation& operation) { return !is_initialize(operation); });
  }
  return false;
}

void SqliteWorker::initialize_all() {
  const auto is_answered = [&](const std::shared_ptr<Operation>& operation) {
    if (!is_initialize(*operation) || loop_.instant() < write_after_) return false;
    if (!claim(*operation)) return true;
    const auto done = table_.initialize();
    if (!done && done.error().busy) {
      wait_for_lock();
      return false;
    }
    if (done) {
      purge();
      answer(operation, Reply<std::string>{Outcome::applied, *done, {}});
    } else {
      answer(operation, operation->failure(done.error().outcome, done.error().error));
    }
    return true;
  };
  std::erase_if(waiting_, is_answered);
}

void SqliteWorker::serve() {
  const auto is_one = [](const auto& operation) { return is_write(operation->request); };
  const bool want_write = loop_.instant() >= write_after_ && std::any_of(waiting_.begin(), waiting_.end(), is_one);
  const bool write = want_write && begin(true);
  const Instant begun = loop_.instant();
  if (!table_.is_open()) return;
  if (!write) {
    const auto can_go_on = [&](const auto& operation) { return !is_one(operation) && !is_initialize(*operation); };
    if (std::none_of(waiting_.begin(), waiting_.end(), can_go_on) || !begin(false)) return;
  }
  if (carry_out(write)) conclude();
  if (write) make_way(begun);
}

/// False where there is no transaction now; what that means to those who wait has been seen to.
bool SqliteWorker::begin(bool write) {
  const auto begun = write ? table_.begin_write() : table_.begin_read();
  if (begun) {
    if (write) {
      backoff_ = {};
      obstacle_.store(Obstacle::none, std::memory_order_relaxed);
    }
    return true;
  }
  if (begun.error().busy) {
    polite_until_ = loop_.instant() + polite_for;
    wait_for_lock();
    return false;
  }
  fail_waiting(begun.error(), [&](const Operation& operation) {
    return !is_initialize(operation) && (!write || is_write(operation.request));
  });
  if (begun.error().reopen) table_.close();
  return false;
}

/// False where the transaction is over already and all who were in it have been seen to.
bool SqliteWorker::carry_out(bool write) {
  const Instant enough = loop_.instant() + batch_time_max;
  std::deque<std::shared_ptr<Operation>> left;
  std::optional<Failure> failure;
  while (!waiting_.empty() && !failure) {
    if (batch_.size() >= batch_max || (!batch_.empty() && loop_.instant() >= enough)) break;
    std::shared_ptr<Operation> operation = std::move(waiting_.front());
    waiting_.pop_front();
    if (is_initialize(*operation) || (!write && is_write(operation->request))) {
      left.push_back(std::move(operation));
    } else if (claim(*operation)) {
      failure = execute(std::move(operation));
    }
  }
  std::move(left.rbegin(), left.rend(), std::front_inserter(waiting_));
  if (!failure) return true;
  table_.rollback();
  if (failure->busy) {
    // Somebody repairs the log after a crash: a matter of a moment.
    for (auto item = batch_.rbegin(); item != batch_.rend(); ++item) waiting_.push_front(std::move(item->first));
    batch_.clear();
    wait_for_lock();
  } else {
    fail_batch(*failure);
  }
  return false;
}

/// Into the batch with it. A failure that is not only its own ends the transaction.
std::optional<Failure> SqliteWorker::execute(std::shared_ptr<Operation> operation) {
  auto result = table_.execute(operation->request);
  Answer answer = result ? std::move(*result) : operation->failure(result.error().outcome, result.error().error);
  batch_.emplace_back(std::move(operation), std::move(answer));
  if (result || result.error().only_row) return std::nullopt;
  return std::move(result.error());
}

/// Commits, and then tells: a reply must never tell of what was not committed.
void SqliteWorker::conclude() {
  const auto changed_rows = [](const auto& item) {
    const auto applied = [](const auto& reply) { return reply.outcome == Outcome::applied; };
    return is_write(item.first->request) && std::visit(applied, item.second);
  };
  const bool changed = std::any_of(batch_.begin(), batch_.end(), changed_rows);
  const auto committed = table_.commit();
  if (!committed) {
    table_.rollback();
    fail_batch(committed.error());
    return;
  }
  // Committed into a file that is no longer the one at the path: nobody else will ever see it.
  if (changed && table_.moved()) {
    fail_batch({Outcome::unknown, {Code::unavailable, "the database was deleted or replaced during the write"}});
    return;
  }
  if (changed) feed_.touch();
  std::move(batch_.begin(), batch_.end(), std::back_inserter(results_));
  batch_.clear();
}

void SqliteWorker::fail_batch(const Failure& failure) {
  for (auto& [operation, answer] : batch_) {
    Outcome outcome = failure.outcome;
    // A read has nothing to be unsure of: it did not happen.
    if (!is_write(operation->request) && outcome == Outcome::unknown) outcome = Outcome::throttled;
    results_.emplace_back(operation, operation->failure(outcome, failure.error));
  }
  batch_.clear();
  if (failure.reopen) table_.close();
}

template <class Predicate>
void SqliteWorker::fail_waiting(const Failure& failure, Predicate predicate) {
  const auto is_done_for = [&](const std::shared_ptr<Operation>& operation) {
    if (!predicate(*operation)) return false;
    if (claim(*operation)) answer(operation, operation->failure(failure.outcome, failure.error));
    return true;
  };
  std::erase_if(waiting_, is_done_for);
}

/// Full jitter, so that processes that were turned away together do not come back together (S10).
void SqliteWorker::wait_for_lock() {
  obstacle_.store(Obstacle::lock, std::memory_order_relaxed);
  backoff_ = std::clamp(2 * backoff_, backoff_first, backoff_max);
  write_after_ = loop_.instant() + random_.between(backoff_first / 5, backoff_);
}

/// SQLite's lock goes to whoever asks first, and we would ask again at once: others, who sleep between their tries,
/// would hardly ever meet it free. So a transaction of ours among others' is followed by a pause as long as it took;
/// what arrives meanwhile shares the next commit, so that little is lost.
void SqliteWorker::make_way(Instant begun) {
  const Instant now = loop_.instant();
  if (now >= look_after_) look_for_changes();
  // Short ones leave gaps enough; to pause after them only made all slower (measured: by a half).
  const bool was_long = now - begun >= polite_from;
  if (was_long && now < polite_until_) write_after_ = now + random_.between((now - begun) / 2, now - begun);
}

/// Whether other connections have committed since the last look.
void SqliteWorker::look_for_changes() {
  look_after_ = loop_.instant() + look_every;
  const auto version = table_.data_version();
  if (version == seen_version_) return;
  if (seen_version_) {
    feed_.touch();
    polite_until_ = loop_.instant() + polite_for;
  }
  seen_version_ = version;
}

/// At the first opening, and now and then. Failure is no harm: the next one tries again.
void SqliteWorker::purge() {
  // Not all processes at once.
  purge_after_ = loop_.instant() + random_.between(purge_every / 2, purge_every);
  const auto purged = table_.purge(loop_.wall());
  if (purged && *purged > 0) feed_.touch();
}

void SqliteWorker::answer(std::shared_ptr<Operation> operation, Answer answer) {
  results_.emplace_back(std::move(operation), std::move(answer));
}

void SqliteWorker::deliver() {
  if (results_.empty()) return;
  answered_(std::exchange(results_, {}));
}

}  // namespace holdfast::store
