#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/store.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "support/run_until.hpp"

namespace holdfast::test {

/// One store, asked one question at a time: each call waits for its answer.
class Asking {
 public:
  static constexpr Duration patience = std::chrono::seconds(20);

  Asking(std::unique_ptr<Store> store, runtime::AsioLoop& loop) : store_(std::move(store)), loop_(loop) {}
  ~Asking() { close(); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  Store* operator->() { return store_.get(); }
  [[nodiscard]] Instant deadline(Duration time = patience) const { return loop_.instant() + time; }

  Reply<std::string> initialize() {
    return ask<Reply<std::string>>([&](auto handler) { store_->initialize(deadline(), handler); });
  }
  RowReply get(const std::string& key) {
    return ask<RowReply>([&](auto handler) { store_->get(key, deadline(), handler); });
  }
  RowsReply batch_get(const std::vector<std::string>& keys) {
    return ask<RowsReply>([&](auto handler) { store_->batch_get(keys, deadline(), handler); });
  }
  RowReply update(const Update& update, Duration time = patience) {
    return ask<RowReply>([&](auto handler) { store_->update(update, deadline(time), handler); });
  }
  RowReply put(const std::string& key, Attributes attributes) {
    std::vector<Change> changes;
    for (auto& [name, value] : attributes) changes.push_back(Change::set(name, value));
    return update({key, std::move(changes), Condition::always()});
  }
  RowsReply transact(const std::vector<Update>& updates) {
    return ask<RowsReply>([&](auto handler) {
      // Of its own: a server that all tests share remembers tokens, and these loops draw the same numbers.
      store_->transact(updates, std::to_string(runtime::random_seed()), deadline(), handler);
    });
  }
  PageReply query_due(const QueryDue& query) {
    return ask<PageReply>([&](auto handler) { store_->query_due(query, deadline(), handler); });
  }
  RowsReply query_owned(const std::string& owner) {
    return ask<RowsReply>([&](auto handler) { store_->query_owned(owner, deadline(), handler); });
  }
  void close() {
    if (store_ == nullptr) return;
    bool closed = false;
    store_->close([&] { closed = true; });
    EXPECT_TRUE(run_until(loop_, [&] { return closed; }));
    store_.reset();
  }

 private:
  template <class Answer, class Call>
  Answer ask(Call call) {
    auto answer = std::make_shared<std::optional<Answer>>();
    call([answer](Answer given) { *answer = std::move(given); });
    EXPECT_TRUE(run_until(loop_, [&] { return answer->has_value(); })) << "no answer";
    return answer->value_or(Answer{});
  }

  std::unique_ptr<Store> store_;
  runtime::AsioLoop& loop_;
};

}  // namespace holdfast::test
