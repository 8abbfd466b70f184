#include "kinds.hpp"

#include <stdexcept>
#include <utility>

#include "runtime/asio_loop.hpp"
#include "sim/store.hpp"
#include "store/memory/memory_store.hpp"
#include "support/dynamodb_servers.hpp"
#include "support/dynamodb_store.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::test {

namespace {

class InMemory final : public Table {
 public:
  std::unique_ptr<Store> open(Loop& loop) override { return store::make_memory_store(table_, loop); }

 private:
  std::shared_ptr<store::MemoryTable> table_ = std::make_shared<store::MemoryTable>();
};

/// The simulator's, with a network on which nothing goes wrong but the time that it takes.
class Simulated final : public Table {
 public:
  std::unique_ptr<Store> open(Loop& loop) override {
    sim::SimStore::Hooks hooks;
    hooks.judge = [](const store::Request&) {
      sim::Fate fate;
      fate.there = fate.back = std::chrono::microseconds(200);
      return fate;
    };
    return std::make_unique<sim::SimStore>(table_, loop, loop, std::int16_t{0}, std::move(hooks), true);
  }

 private:
  std::shared_ptr<sim::SimTable> table_ = std::make_shared<sim::SimTable>();
};

class InFile final : public Table {
 public:
  explicit InFile(std::string settings) : settings_(std::move(settings)) {}
  std::unique_ptr<Store> open(Loop& loop) override {
    auto store = open_store("sqlite:" + folder_.file("table.db") + settings_, loop);
    if (!store) throw std::runtime_error(store.error().detail);
    return std::move(*store);
  }

 private:
  std::string settings_;
  TemporaryFolder folder_;
};

/// A table of its own on a server that all tests share.
class OnDynamoDb final : public Table {
 public:
  OnDynamoDb(DynamoDbServer::Kind kind, const std::string& settings, bool stream = false)
      : server_(DynamoDbServer::of(kind)), url_("dynamodb://" + random_table_name("contract") + settings) {
    making_.stream = stream;
  }

  std::unique_ptr<Store> open(Loop& loop) override {
    return open_dynamodb(dynamic_cast<runtime::AsioLoop&>(loop), server_.endpoint(), url_, {}, making_);
  }

 private:
  const DynamoDbServer& server_;
  const std::string url_;
  store::dynamodb::Making making_;
};

std::unique_ptr<Table> on_dynamodb_local(const std::string& settings, bool stream) {
  return std::make_unique<OnDynamoDb>(DynamoDbServer::Kind::local, settings, stream);
}

}  // namespace

std::vector<Kind> all_kinds() {
  return {
      {"memory", [] { return std::make_unique<InMemory>(); }},
      {"simulated", [] { return std::make_unique<Simulated>(); }},
      {"sqlite", [] { return std::make_unique<InFile>(""); }},
      {"sqlite_sync_normal", [] { return std::make_unique<InFile>("?sync=normal"); }},
      {"dynamodb_local", [] { return on_dynamodb_local("", true); }},
      {"dynamodb_local_renamed",
       [] { return on_dynamodb_local("?key=id&owner=who&expires=until&state=want", false); }},
      {"dynalite", [] { return std::make_unique<OnDynamoDb>(DynamoDbServer::Kind::dynalite, ""); }},
  };
}

}  // namespace holdfast::test
