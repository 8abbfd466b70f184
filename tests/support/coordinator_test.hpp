#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coord/coordinator.hpp"
#include "store/memory/memory_store.hpp"
#include "support/faulty_store.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::test {

using coord::Held;
using coord::HoldEnd;
using coord::TaskOptions;

/// One process: a store of its own on the common table.
struct Process {
  Process(std::string name, const std::shared_ptr<store::MemoryTable>& table, Loop& loop)
      : store(store::make_memory_store(table, loop), loop),
        coordinator(std::make_unique<coord::Coordinator>(name, store, loop)) {}
  [[nodiscard]] std::size_t writes() const { return store.updates.size(); }

  FaultyStore store;
  std::unique_ptr<coord::Coordinator> coordinator;
};

/// One try to get a task, and what became of it.
struct Try {
  std::optional<Ended<std::shared_ptr<Held>>> got;
  std::optional<LossReason> lost;
  std::optional<HoldEnd> ended;
  [[nodiscard]] bool holds() const { return got && *got && **got; }
  void let_go() { (**got)->release({}); }
};

/// One call of once(), and what became of it.
struct OnceCall {
  std::optional<Ended<coord::Coordinator::Turn>> turn;
  std::optional<Ended<std::optional<OnceResult>>> finished;
  bool lost = false;
  [[nodiscard]] bool runs() const { return turn && *turn && (*turn)->held; }
};

/// Several coordinators, each with a store of its own, on one table, in virtual time.
class CoordinatorTest : public testing::Test {
 protected:
  Process& join(const std::string& name) {
    processes_.push_back(std::make_unique<Process>(name, table_, loop_));
    return *processes_.back();
  }
  std::shared_ptr<Try> acquire(Process& by, const std::string& task, TaskOptions options) {
    auto tried = std::make_shared<Try>();
    by.coordinator->acquire(task, options,
                            {.acquired = [tried](auto got) { tried->got = std::move(got); },
                             .lost = [tried](LossReason reason) { tried->lost = reason; },
                             .ended = [tried](HoldEnd how, const Error&) { tried->ended = how; }});
    return tried;
  }
  static std::shared_ptr<OnceCall> begin_once(Process& by, OnceOptions what, const TaskOptions& task) {
    auto call = std::make_shared<OnceCall>();
    by.coordinator->once(std::move(what), task,
                         {.turn = [call](auto turn) { call->turn = std::move(turn); },
                          .lost = [call](LossReason) { call->lost = true; },
                          .finished = [call](auto finished) { call->finished = std::move(finished); }});
    return call;
  }
  /// Its first claim is applied and the reply lost; that it was, is heard of when its belief has ended, 9 s from now.
  void wins_too_late(Process& late) {
    late.store.judge = [this, &late, begin = loop_.instant()](const Update* update) {
      using Fault = FaultyStore::Fault;
      if (update == nullptr) return Fault::none;
      if (late.writes() == 1) return Fault::reply_lost;
      if (loop_.instant() - begin < std::chrono::milliseconds(8500)) return Fault::throttled;
      late.store.latency = std::chrono::milliseconds(1500);
      return Fault::none;
    };
  }
  TaskOptions options(Duration wait = Duration::zero()) {
    TaskOptions options;
    options.terms = *make_terms({.lease = std::chrono::seconds(10)});
    options.wait = wait;
    return options;
  }
  bool until(const std::function<bool()>& condition, Duration limit = std::chrono::minutes(1)) {
    return loop_.advance_until(condition, limit);
  }
  Row row(const std::string& key) {
    std::optional<Row> row;
    bool answered = false;
    const auto store = store::make_memory_store(table_, loop_);
    store->get(key, loop_.instant() + std::chrono::seconds(1), [&](RowReply reply) {
      row = reply.value;
      answered = true;
    });
    EXPECT_TRUE(until([&] { return answered; }));
    store->close([] {});
    loop_.settle();
    return row.value_or(Row{});
  }

  VirtualLoop loop_;
  std::shared_ptr<store::MemoryTable> table_ = std::make_shared<store::MemoryTable>();
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace holdfast::test
