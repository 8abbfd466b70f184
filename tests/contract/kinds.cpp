#include "kinds.hpp"

#include <stdexcept>
#include <utility>

#include "store/memory/memory_store.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::test {

namespace {

class InMemory final : public Table {
 public:
  std::unique_ptr<Store> open(Loop& loop) override { return store::make_memory_store(table_, loop); }

 private:
  std::shared_ptr<store::MemoryTable> table_ = std::make_shared<store::MemoryTable>();
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

}  // namespace

std::vector<Kind> all_kinds() {
  return {
      {"memory", [] { return std::make_unique<InMemory>(); }},
      {"sqlite", [] { return std::make_unique<InFile>(""); }},
      {"sqlite_sync_normal", [] { return std::make_unique<InFile>("?sync=normal"); }},
  };
}

}  // namespace holdfast::test
