#include "store/memory/memory_store.hpp"

#include <algorithm>
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

  void changes(std::function<void()> listener) override { feed_->listen(std::move(listener)); }

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
  for (const auto& [key, row] : rows_) {
    if (may_be_forgotten(row, now)) dead.push_back(key);
  }
  for (const std::string& key : dead) erase(key);
  if (!dead.empty()) tell();
  return Reply<std::string>{Outcome::applied, "a table in memory needs no preparation", {}};
}

Answer MemoryTable::run(const Get& request, WallTime /*now*/) {
  return RowReply{Outcome::applied, find(request.key), {}};
}

Answer MemoryTable::run(const BatchGet& request, WallTime /*now*/) {
  RowsReply reply{Outcome::applied, {}, {}};
  for (const std::string& key : std::set<std::string>(request.keys.begin(), request.keys.end())) {
    if (auto row = find(key)) reply.value.push_back(std::move(*row));
  }
  return reply;
}

Answer MemoryTable::run(const Update& request, WallTime /*now*/) {
  RowReply reply = decide(request, find(request.key));
  if (reply.ok()) {
    put(*reply.value);
    tell();
  }
  return reply;
}

Answer MemoryTable::run(const Transact& request, WallTime /*now*/) {
  std::vector<std::optional<Row>> current;
  for (const Update& update : request.updates) current.push_back(find(update.key));
  RowsReply reply = decide_all(request.updates, std::move(current));
  if (reply.ok()) {
    for (const Row& row : reply.value) put(row);
    tell();
  }
  return reply;
}

Answer MemoryTable::run(const QueryDue& request, WallTime /*now*/) {
  PageReply reply{Outcome::applied, {}, {}};
  const auto last = last_expiry(request.before);
  if (!last) return reply;
  auto from = due_.lower_bound({request.state, request.from.time_since_epoch().count(), ""});
  if (!request.page.empty()) {
    const auto after = position_from(request.page);
    from = due_.upper_bound({request.state, after->expires_at, after->key});
  }
  const std::size_t limit = std::min(request.limit, page_rows_max);
  for (; from != due_.end(); ++from) {
    const auto& [state, expires_at, key] = *from;
    if (state != request.state || expires_at > *last) break;
    if (reply.value.rows.size() == limit) {
      const Row& previous = reply.value.rows.back();
      reply.value.next = to_token(index_key(previous)->expires_at, previous.key);
      break;
    }
    reply.value.rows.push_back(rows_.at(key));
  }
  return reply;
}

Answer MemoryTable::run(const QueryOwned& request, WallTime /*now*/) {
  RowsReply reply{Outcome::applied, {}, {}};
  for (const auto& [key, row] : rows_) {
    const Value* owner = row.find(attribute::owner);
    if (owner != nullptr && *owner == Value(request.owner)) reply.value.push_back(row);
  }
  return reply;
}

std::optional<Row> MemoryTable::find(const std::string& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? std::nullopt : std::optional(found->second);
}

void MemoryTable::put(Row row) {
  erase(row.key);
  if (const auto index = index_key(row)) due_.emplace(index->state, index->expires_at, row.key);
  std::string key = row.key;
  rows_.insert_or_assign(std::move(key), std::move(row));
}

void MemoryTable::erase(const std::string& key) {
  const auto found = rows_.find(key);
  if (found == rows_.end()) return;
  if (const auto index = index_key(found->second)) due_.erase({std::string(index->state), index->expires_at, key});
  rows_.erase(found);
}

void MemoryTable::tell() {
  for (ChangeFeed* feed : feeds_) feed->touch();
}

std::unique_ptr<Store> make_memory_store(std::shared_ptr<MemoryTable> table, Loop& loop) {
  return std::make_unique<MemoryStore>(std::move(table), loop);
}

}  // namespace holdfast::store
