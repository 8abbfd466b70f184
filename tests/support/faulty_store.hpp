#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"

namespace holdfast::test {

/// A store whose way to the table is bad, as the test says for each request.
class FaultyStore final : public Store {
 public:
  enum class Fault {
    none,
    throttled,     ///< refused, nothing happened
    request_lost,  ///< nothing happened; unknown at the deadline
    reply_lost,    ///< it happened; unknown at the deadline
    rejected,
    invalid,  ///< rejected for what is in the request
  };
  /// `update` is null for reads.
  using Judge = std::function<Fault(const Update* update)>;

  FaultyStore(std::unique_ptr<Store> inner, Loop& loop) : inner_(std::move(inner)), loop_(loop) {}

  Judge judge;                       ///< empty: no faults
  Duration latency{};                ///< of each reply
  std::map<std::string, int> asked;  ///< by kind
  std::vector<std::pair<Instant, Update>> updates;
  /// Changes are for one reader: told by the test, to `listener`, rather than by the store itself.
  bool changes_need_reader = false;
  bool has_stream = true;
  ChangeListener listener;

  void initialize(Instant deadline, Handler<Reply<std::string>> handler) override {
    inner_->initialize(deadline, std::move(handler));
  }
  void get(std::string key, Instant deadline, Handler<RowReply> handler) override {
    pass("get", nullptr, deadline, std::move(handler),
         [&](Handler<RowReply> then) { inner_->get(std::move(key), deadline, std::move(then)); });
  }
  void batch_get(std::vector<std::string> keys, Instant deadline, Handler<RowsReply> handler) override {
    pass("batch_get", nullptr, deadline, std::move(handler),
         [&](Handler<RowsReply> then) { inner_->batch_get(std::move(keys), deadline, std::move(then)); });
  }
  void update(Update update, Instant deadline, Handler<RowReply> handler) override {
    updates.emplace_back(loop_.instant(), update);
    pass("update", &update, deadline, std::move(handler),
         [&](Handler<RowReply> then) { inner_->update(std::move(update), deadline, std::move(then)); });
  }
  void transact(std::vector<Update> updates_, std::string token, Instant deadline,
                Handler<RowsReply> handler) override {
    pass("transact", updates_.data(), deadline, std::move(handler), [&](Handler<RowsReply> then) {
      inner_->transact(std::move(updates_), std::move(token), deadline, std::move(then));
    });
  }
  void query_due(QueryDue query, Instant deadline, Handler<PageReply> handler) override {
    pass("query_due", nullptr, deadline, std::move(handler),
         [&](Handler<PageReply> then) { inner_->query_due(std::move(query), deadline, std::move(then)); });
  }
  void query_owned(std::string owner, Instant deadline, Handler<RowsReply> handler) override {
    inner_->query_owned(std::move(owner), deadline, std::move(handler));
  }
  void changes(ChangeListener new_one) override {
    if (!changes_need_reader) return inner_->changes(std::move(new_one));
    listener = std::move(new_one);
  }
  [[nodiscard]] Capabilities capabilities() const override {
    Capabilities can = inner_->capabilities();
    if (!changes_need_reader) return can;
    can.changes_need_reader = true;
    can.changes = has_stream;
    if (!has_stream) can.no_changes = "the stream is off: turn it on";
    return can;
  }
  void close(std::function<void()> done) override { inner_->close(std::move(done)); }

 private:
  template <class T, class Forward>
  void pass(const char* kind, const Update* update, Instant deadline, Handler<Reply<T>> handler, Forward forward) {
    ++asked[kind];
    const Fault fault = judge ? judge(update) : Fault::none;
    switch (fault) {
      case Fault::none:
        return forward(latency == Duration::zero() ? std::move(handler) : late(std::move(handler)));
      case Fault::throttled:
        return answer(loop_.instant(), std::move(handler), Outcome::throttled, "busy");
      case Fault::rejected:
        return answer(loop_.instant(), std::move(handler), Outcome::rejected, "there is no such table");
      case Fault::invalid:
        return answer(loop_.instant(), std::move(handler), Outcome::rejected, "the key is no UTF-8", Code::usage);
      case Fault::reply_lost:
        forward([](Reply<T>) {});
        return answer(deadline, std::move(handler), Outcome::unknown, "timed out");
      case Fault::request_lost:
        return answer(deadline, std::move(handler), Outcome::unknown, "timed out");
    }
  }
  template <class T>
  Handler<Reply<T>> late(Handler<Reply<T>> handler) {
    return [this, handler = std::move(handler)](Reply<T> reply) {
      loop_.call_after(latency, [handler, reply = std::move(reply)] { handler(reply); });
    };
  }
  template <class T>
  void answer(Instant when, Handler<Reply<T>> handler, Outcome outcome, const char* why,
              Code code = Code::unavailable) {
    loop_.call_at(when, [handler = std::move(handler), outcome, why, code] {
      Reply<T> reply;
      reply.outcome = outcome;
      reply.error = Error(code, why);
      handler(std::move(reply));
    });
  }

  std::unique_ptr<Store> inner_;
  Loop& loop_;
};

}  // namespace holdfast::test
