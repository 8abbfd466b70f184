#include "store/memory/memory_store.hpp"

#include <set>
#include <utility>

#include "store/request_store.hpp"
#include "store/rows.hpp"

namespace holdfast::store {

namespace {

class MemoryStore final : public RequestStore {
 public:
  MemoryStore(std::shared_ptr<MemoryTable> table, Loop& loop) : RequestStore(loop), table_(std::move(table)) {
    table_->subscribe(*feed_);
  }
  ~MemoryStore() override { table_->unsubscribe(*feed_); }

  void changes(ChangeListener listener) override { feed_->listen(std::move(listener)); }

  [[nodiscard]] Capabilities capabilities() const override {
    return {.name = "memory",
            .transactions = true,
            .changes = true,
            .index_is_consistent = true,
            .returns_row_on_conflict = true};
  }

 protected:
  void submit(std::shared_ptr<Operation> operation) override {
    loop().post([operation = std::move(operation), table = table_, &loop = loop()] {
      const Now now = loop.now();
      if (now.instant < operation->deadline) return operation->respond(table->execute(operation->request, now.wall));
      operation->respond(operation->failure(
          Outcome::throttled, {Code::unavailable, "the loop is behind: the call was not begun within its deadline"}));
    });
  }

  void shut(std::function<void()> done) override {
    feed_->listen(nullptr);
    loop().post(std::move(done));  // after all that was submitted before
  }

 private:
  std::shared_ptr<MemoryTable> table_;
  std::shared_ptr<ChangeFeed> feed_ = std::make_shared<ChangeFeed>(loop());
};

}  // namespace

Answer MemoryTable::execute(const Request& request, WallTime now) {
  const std::lock_guard lock(mutex_);
  return std::visit([&](const auto& of_its_kind) { return run(of_its_kind, now); }, request);
}

void MemoryTable::subscribe(ChangeFeed& feed) {
  const std::lock_guard lock(mutex_);
  feeds_.push_back(&feed);
}

void MemoryTable::unsubscribe(ChangeFeed& feed) {
  const std::lock_guard lock(mutex_);
  std::erase(feeds_, &feed);
}

Answer MemoryTable::run(const Initialize& /*request*/, WallTime now) {
  std::vector<std::string> dead;
  rows_.visit([&](const Row& row) {
    if (may_be_forgotten(row, now)) dead.push_back(row.key);
  });
  for (const std::string& key : dead) rows_.erase(key);
  if (!dead.empty()) tell();
  return Reply<std::string>{Outcome::applied, "a table in memory needs no preparation", {}};
}

Answer MemoryTable::run(const Get& request, WallTime /*now*/) {
  return RowReply{Outcome::applied, copy_of(request.key), {}};
}

Answer MemoryTable::run(const BatchGet& request, WallTime /*now*/) {
  RowsReply reply{Outcome::applied, {}, {}};
  for (const std::string& key : std::set<std::string>(request.keys.begin(), request.keys.end())) {
    if (const Row* row = rows_.find(key)) reply.value.push_back(*row);
  }
  return reply;
}

Answer MemoryTable::run(const Update& request, WallTime /*now*/) {
  RowReply reply;
  rows_.edit(request.key, [&](Row& row, bool exists) {
    reply = decide_in_place(request, row, exists);
    if (reply.ok() || (exists && reply.outcome == Outcome::conflict)) reply.value = row;
    return reply.ok();
  });
  if (reply.ok()) tell();
  return reply;
}

Answer MemoryTable::run(const Transact& request, WallTime /*now*/) {
  std::vector<std::optional<Row>> current;
  for (const Update& update : request.updates) current.push_back(copy_of(update.key));
  RowsReply reply = decide_all(request.updates, std::move(current));
  if (reply.ok()) {
    for (const Row& row : reply.value) rows_.put(row);
    tell();
  }
  return reply;
}

Answer MemoryTable::run(const QueryDue& request, WallTime /*now*/) {
  return rows_.query(request);
}

Answer MemoryTable::run(const QueryOwned& request, WallTime /*now*/) {
  RowsReply reply{Outcome::applied, {}, {}};
  rows_.visit([&](const Row& row) {
    const Value* owner = row.find(attribute::owner);
    if (owner != nullptr && *owner == Value(request.owner)) reply.value.push_back(row);
  });
  return reply;
}

std::optional<Row> MemoryTable::copy_of(const std::string& key) const {
  const Row* row = rows_.find(key);
  return row == nullptr ? std::nullopt : std::optional(*row);
}

void MemoryTable::tell() {
  for (ChangeFeed* feed : feeds_) feed->touch();
}

std::unique_ptr<Store> make_memory_store(std::shared_ptr<MemoryTable> table, Loop& loop) {
  return std::make_unique<MemoryStore>(std::move(table), loop);
}

}  // namespace holdfast::store
