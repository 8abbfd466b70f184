#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coord/available.hpp"
#include "coord/journal.hpp"
#include "core/coord/names.hpp"
#include "store/memory/memory_store.hpp"
#include "support/gated_store.hpp"
#include "support/temporary_folder.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::test {

/// One machine: a journal of its own, and a way to the common table.
class Machine {
 public:
  Machine(std::string path, std::shared_ptr<store::MemoryTable> table, VirtualLoop& loop)
      : path_(std::move(path)), table_(std::move(table)), loop_(loop) {
    start();
  }
  ~Machine() { stop(); }

  void start() {
    store = std::make_unique<GatedStore>(store::make_memory_store(table_, loop_), loop_);
    coord::JournalOptions options;
    options.path = path_;
    journal = *coord::Journal::open(options);
    coord::AvailableOptions mode;
    mode.max_age = std::chrono::hours(1);
    mode.max_provisional = 50;
    mode.proposer = "me";
    available = std::make_unique<coord::Available>(*journal, *store, loop_, mode);
  }
  /// As if killed: whatever was under way is gone.
  void stop() {
    available.reset();
    journal.reset();
    store->close([] {});
    loop_.settle();
    store.reset();
  }

  template <class T, class Call>
  Ended<Accepted<T>> ask(Call call) {
    std::optional<Ended<Accepted<T>>> got;
    call(*available, [&](Ended<Accepted<T>> result) { got = std::move(result); });
    EXPECT_TRUE(loop_.advance_until([&] { return got.has_value(); }));
    return *got;
  }
  Ended<Accepted<Added>> add(std::int64_t delta, const std::string& ticket, std::optional<std::int64_t> floor = {}) {
    return ask<Added>([&](coord::Available& by, auto then) { by.add({"c", delta, floor}, ticket, then); });
  }
  Ended<Accepted<Decided>> decide(const Value& value, const std::string& ticket) {
    return ask<Decided>([&](coord::Available& by, auto then) { by.decide("k", value, ticket, then); });
  }
  Ended<Accepted<Sent>> send(const std::string& group, const std::string& body, const std::string& ticket) {
    return ask<Sent>([&](coord::Available& by, auto then) {
      by.send({"q", group, body, std::chrono::milliseconds(0)}, ticket, then);
    });
  }
  Ended<Quota> set_aside(const std::string& id, Basket basket, Duration ttl = std::chrono::hours(3)) {
    std::optional<Ended<Quota>> got;
    available->set_aside(id, std::move(basket), ttl, [&](Ended<Quota> result) { got = std::move(result); });
    EXPECT_TRUE(loop_.advance_until([&] { return got.has_value(); }));
    return *got;
  }
  /// What is written to it from now on fails.
  void remove_journal() const { std::filesystem::remove(path_); }
  Ended<ReconcileReport> reconcile() {
    std::optional<Ended<ReconcileReport>> got;
    coord::ReconcileOptions options;
    options.compensate = [this](const Intent& intent, bool is_repeat, const auto& done) {
      compensated.push_back(intent.ticket + (is_repeat ? " again" : ""));
      if (at_compensation) at_compensation(intent.ticket);
      if (intent.ticket == hangs) {
        much_later = done;
      } else {
        done(compensation);
      }
    };
    options.compensation_limit = std::chrono::seconds(10);
    available->reconcile(options, [&](Ended<ReconcileReport> result) { got = std::move(result); });
    EXPECT_TRUE(loop_.advance_until([&] { return got.has_value(); }));
    return *got;
  }
  [[nodiscard]] Intent intent(const std::string& ticket) const { return journal->find(ticket)->value(); }

  std::unique_ptr<GatedStore> store;
  std::unique_ptr<coord::Journal> journal;
  std::unique_ptr<coord::Available> available;
  std::vector<std::string> compensated;
  Result<void> compensation;
  std::string hangs;                             // this ticket's compensation calls nobody
  std::function<void(Result<void>)> much_later;  // what it should have called
  std::function<void(const std::string&)> at_compensation;

 private:
  const std::string path_;
  const std::shared_ptr<store::MemoryTable> table_;
  VirtualLoop& loop_;
};

template <class T>
bool is_committed(const Ended<Accepted<T>>& result) {
  EXPECT_TRUE(result) << result.error().error.detail;
  return result && std::holds_alternative<Committed<T>>(*result);
}
template <class T>
bool is_provisional(const Ended<Accepted<T>>& result) {
  EXPECT_TRUE(result) << result.error().error.detail;
  return result && std::holds_alternative<Provisional>(*result);
}

/// Machines that come and go, and the table that they share, in virtual time; the journals are real files.
class AvailableTest : public testing::Test {
 protected:
  AvailableTest() { here_ = join("here"); }
  std::unique_ptr<Machine> join(const std::string& name) {
    return std::make_unique<Machine>(folder_.file(name), table_, loop_);
  }
  std::optional<Row> row(const std::string& key) {
    return std::get<RowReply>(table_->execute(store::Get{key}, loop_.wall())).value;
  }
  std::int64_t number(const std::string& key, std::string_view name) {
    const auto found = row(key);
    return found ? found->number(name) : 0;
  }
  std::int64_t count() { return number("COUNTER#c", coord::value); }
  std::int64_t hats() { return number("STOCK#hat", coord::available); }
  void put_hats(std::int64_t hats) {
    const Update update{"STOCK#hat", {Change::set(coord::available, hats)}, Condition::always()};
    (void)table_->execute(update, loop_.wall());
  }
  void damage_counter() {
    const Update update{"COUNTER#c", {Change::set(coord::value, "many")}, Condition::always()};
    (void)table_->execute(update, loop_.wall());
  }
  std::vector<std::string> bodies(const std::string& group) {
    std::vector<std::string> all;
    for (std::int64_t seq = 1; auto found = row(message_key("q", group, seq)); ++seq) {
      all.emplace_back(found->text(coord::body));
    }
    return all;
  }

  TemporaryFolder folder_;
  VirtualLoop loop_;
  std::shared_ptr<store::MemoryTable> table_ = std::make_shared<store::MemoryTable>();
  std::unique_ptr<Machine> here_;
};

}  // namespace holdfast::test
