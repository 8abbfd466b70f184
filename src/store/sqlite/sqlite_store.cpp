#include "store/sqlite/sqlite_store.hpp"

#include <sys/stat.h>

#include <chrono>
#include <utility>
#include <vector>

#include "store/desk.hpp"
#include "store/diagnosis.hpp"
#include "store/request_store.hpp"
#include "store/sqlite/sqlite_diagnose.hpp"
#include "store/sqlite/sqlite_worker.hpp"

namespace holdfast::store {

namespace {

using namespace std::chrono_literals;

class SqliteStore final : public RequestStore, public Diagnosable {
 public:
  SqliteStore(SqliteTable table, SqliteOptions options, Loop& loop)
      : RequestStore(loop), options_(std::move(options)) {
    const auto answered = [&loop, self = self_](Answered answers) {
      loop.post([self, answers = std::move(answers)]() mutable {
        if (self->store != nullptr) self->store->take(answers);
      });
    };
    const auto ended = [&loop, self = self_] {
      loop.post([self] {
        if (self->store != nullptr) self->store->finish();
      });
    };
    worker_ = std::make_unique<SqliteWorker>(std::move(table), loop, *feed_, answered, ended);
  }

  ~SqliteStore() override {
    self_->store = nullptr;
    loop().cancel(closing_timer_);
  }

  void changes(ChangeListener listener) override {
    feed_->listen(std::move(listener));
    worker_->listen();
  }

  [[nodiscard]] Capabilities capabilities() const override {
    return {.name = "sqlite (" + options_.path + ")",
            .transactions = true,
            .changes = true,
            .index_is_consistent = true,
            .returns_row_on_conflict = true};
  }

  void diagnose(Instant /*deadline*/, Handler<Diagnosis> handler) override {
    loop().post([path = options_.path, sync_full = options_.sync_full, handler = std::move(handler)] {
      handler(examine_sqlite(path, sync_full));
    });
  }

  void update_apart(Update update, Instant deadline, Handler<RowReply> handler) override {
    std::unique_ptr<Store> writer;
    if (!idle_.empty()) {
      writer = std::move(idle_.back());
      idle_.pop_back();
    } else if (auto opened = make_sqlite_store(options_, loop()); opened) {
      writer = std::move(*opened);
    } else {
      return loop().post([handler = std::move(handler), error = opened.error()] {
        handler({Outcome::rejected, std::nullopt, error});
      });
    }
    Store& store = *writer;
    // Kept in its own handler until it has answered.
    store.update(std::move(update), deadline,
                 [self = self_, kept = std::make_shared<std::unique_ptr<Store>>(std::move(writer)),
                  handler = std::move(handler)](RowReply reply) {
                   if (self->store != nullptr) self->store->idle_.push_back(std::move(*kept));
                   handler(std::move(reply));
                 });
  }

  void walk(std::string from, Instant /*deadline*/, Handler<Reply<Walked>> handler) override {
    loop().post([path = options_.path, from = std::move(from), handler = std::move(handler)] {
      handler(walk_sqlite(path, from));
    });
  }

 protected:
  void submit(std::shared_ptr<Operation> operation) override {
    // The timer depends on neither thread nor file: a stuck disk cannot hold up an answer.
    desk_.add(operation, operation->deadline, [this, operation] { expire(operation); });
    // What is asked in one turn of the loop goes over together: one wake-up of the thread, and one commit.
    outbox_.push_back(std::move(operation));
    if (outbox_.size() > 1) return;
    loop().post([self = self_] {
      if (self->store != nullptr) self->store->hand_over();
    });
  }

  void shut(std::function<void()> done) override {
    feed_->listen(nullptr);
    closed_ = std::move(done);
    loop().post([self = self_] {
      if (self->store != nullptr) self->store->start_closing();
    });
  }

 private:
  // A disk that hangs for longer is waited for by the destructor.
  static constexpr Duration closing_max = 5s;

  struct Self {
    SqliteStore* store;  // null once it is gone
  };

  void hand_over() {
    const auto self = self_;  // a handler may destroy the store
    for (const auto& operation : worker_->submit(std::exchange(outbox_, {}))) {
      if (!operation->withdraw()) continue;
      const Error error(Code::exhausted, "too many requests wait for the store");
      desk_.settle(operation, operation->failure(Outcome::throttled, error));
      if (self->store == nullptr) return;
    }
  }

  void take(Answered& answers) {
    const auto self = self_;  // a handler may destroy the store
    for (auto& [operation, answer] : answers) {
      desk_.settle(operation, std::move(answer));
      if (self->store == nullptr) return;
    }
  }

  void expire(const std::shared_ptr<Operation>& operation) {
    if (!operation->withdraw() && !operation->withdrawn()) {
      const Error error(Code::unavailable,
                        "no answer within its deadline from " + options_.path + ", which may still do it");
      return desk_.settle(operation, operation->failure(Outcome::unknown, error));
    }
    desk_.settle(operation, operation->failure(Outcome::throttled, worker_->overdue()));
  }

  void start_closing() {
    closing_timer_ = loop().call_after(closing_max, [this] { finish(); });
    worker_->stop();
    const auto self = self_;
    for (const auto& operation : desk_.all()) {
      if (!operation->withdraw()) continue;  // the thread will answer
      const Error error(Code::unavailable, "the store was closed before it was begun");
      desk_.settle(operation, operation->failure(Outcome::throttled, error));
      if (self->store == nullptr) return;
    }
  }

  /// The thread has ended, or took too long for it.
  void finish() {
    loop().cancel(closing_timer_);
    const auto self = self_;
    for (const auto& operation : desk_.all()) {
      const Error error(Code::unavailable, "the store was closed before it answered; it may have been done");
      desk_.settle(operation, operation->failure(Outcome::unknown, error));
      if (self->store == nullptr) return;
    }
    if (const auto done = std::exchange(closed_, nullptr)) done();
  }

  const SqliteOptions options_;
  std::vector<std::unique_ptr<Store>> idle_;  // of update_apart()
  Desk desk_{loop()};
  std::shared_ptr<ChangeFeed> feed_ = std::make_shared<ChangeFeed>(loop());
  std::function<void()> closed_;
  TimerId closing_timer_ = 0;
  std::vector<std::shared_ptr<Operation>> outbox_;  // asked for in this turn of the loop
  // Tasks on the loop find the store through this, and nothing once it is gone.
  std::shared_ptr<Self> self_ = std::make_shared<Self>(Self{this});
  std::unique_ptr<SqliteWorker> worker_;  // last: its thread uses the feed
};

}  // namespace

Result<std::unique_ptr<Store>> make_sqlite_store(SqliteOptions options, Loop& loop) {
  if (options.path.empty() || options.path.front() == ':') {
    return fail(Code::usage, "\"sqlite:" + options.path + "\" names no file: give sqlite:PATH");
  }
  const std::size_t slash = options.path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : options.path.substr(0, slash + 1);
  struct stat status {};
  const bool has_folder = ::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  if (!has_folder && !options.is_expected) {
    return fail(Code::not_found, "cannot open " + options.path + ": there is no folder " + folder);
  }
  SqliteTable table(options);
  const auto opened = table.open();
  if (!opened && !opened.error().busy) {
    const Code code = opened.error().error.code;
    const bool may_come = code == Code::not_found || (options.is_expected && code == Code::unavailable);
    if (!may_come) return tl::unexpected<Error>(opened.error().error);
  }
  return std::make_unique<SqliteStore>(std::move(table), std::move(options), loop);
}

}  // namespace holdfast::store
