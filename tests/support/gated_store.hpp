#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"

namespace holdfast::test {

/// A store behind a gate: the test says when it can be reached, and is told of each request before it is passed on
/// and after it was answered.
class GatedStore final : public Store {
 public:
  enum class Way {
    open,
    shut,      ///< nothing arrives; unknown after a millisecond
    breaking,  ///< the next write arrives, its reply does not, and from then on nothing
  };
  GatedStore(std::unique_ptr<Store> inner, Loop& loop) : inner_(std::move(inner)), loop_(loop) {}

  Way way = Way::open;
  std::function<void()> before, after;
  std::string rejects;  ///< who reads one row with this in its key is rejected; empty: nobody
  Code rejects_as = Code::usage;

  void initialize(Instant deadline, Handler<Reply<std::string>> handler) override {
    inner_->initialize(deadline, std::move(handler));
  }
  void get(std::string key, Instant deadline, Handler<RowReply> handler) override {
    if (!rejects.empty() && key.find(rejects) != std::string::npos) {
      return lose<std::optional<Row>>(std::move(handler), Outcome::rejected, {rejects_as, "no such key"});
    }
    pass(std::move(handler), [&](auto then) { inner_->get(std::move(key), deadline, std::move(then)); });
  }
  void batch_get(std::vector<std::string> keys, Instant deadline, Handler<RowsReply> handler) override {
    pass(std::move(handler), [&](auto then) { inner_->batch_get(std::move(keys), deadline, std::move(then)); });
  }
  void update(Update update, Instant deadline, Handler<RowReply> handler) override {
    write(std::move(handler), [&](auto then) { inner_->update(std::move(update), deadline, std::move(then)); });
  }
  void transact(std::vector<Update> updates, std::string token, Instant deadline,
                Handler<RowsReply> handler) override {
    write(std::move(handler),
          [&](auto then) { inner_->transact(std::move(updates), std::move(token), deadline, std::move(then)); });
  }
  void query_due(QueryDue query, Instant deadline, Handler<PageReply> handler) override {
    pass(std::move(handler), [&](auto then) { inner_->query_due(std::move(query), deadline, std::move(then)); });
  }
  void query_owned(std::string owner, Instant deadline, Handler<RowsReply> handler) override {
    pass(std::move(handler), [&](auto then) { inner_->query_owned(std::move(owner), deadline, std::move(then)); });
  }
  void changes(ChangeListener listener) override { inner_->changes(std::move(listener)); }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }
  void close(std::function<void()> done) override { inner_->close(std::move(done)); }

 private:
  template <class T, class Forward>
  void pass(Handler<Reply<T>> handler, Forward forward) {
    if (way == Way::shut) return lose<T>(std::move(handler));
    if (before) before();
    forward(Handler<Reply<T>>([this, handler = std::move(handler)](Reply<T> reply) {
      if (after) after();
      handler(std::move(reply));
    }));
  }
  template <class T, class Forward>
  void write(Handler<Reply<T>> handler, Forward forward) {
    if (way != Way::breaking) return pass<T>(std::move(handler), std::move(forward));
    way = Way::shut;
    forward(Handler<Reply<T>>([this, handler = std::move(handler)](const Reply<T>&) { lose<T>(handler); }));
  }
  template <class T>
  void lose(Handler<Reply<T>> handler, Outcome outcome = Outcome::unknown,
            Error error = {Code::unavailable, "the store is away"}) {
    loop_.call_after(std::chrono::milliseconds(1), [handler = std::move(handler), outcome, error = std::move(error)] {
      Reply<T> reply;
      reply.outcome = outcome;
      reply.error = error;
      handler(std::move(reply));
    });
  }

  std::unique_ptr<Store> inner_;
  Loop& loop_;
};

}  // namespace holdfast::test
