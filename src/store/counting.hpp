#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "holdfast/store.hpp"

namespace holdfast {

/// A store that counts what another one is asked, by kind of operation and by outcome. Forwards everything.
/// Must not outlive the store that it stands before. On the store's loop.
class CountingStore final : public Store {
 public:
  explicit CountingStore(Store& store) : store_(store) {}

  /// "update" -> "applied" -> 12. Kinds and outcomes that did not happen are left out.
  [[nodiscard]] std::map<std::string, std::map<std::string, std::int64_t>> counts() const;

  void initialize(Instant deadline, Handler<Reply<std::string>> handler) override;
  void get(std::string key, Instant deadline, Handler<RowReply> handler) override;
  void batch_get(std::vector<std::string> keys, Instant deadline, Handler<RowsReply> handler) override;
  void update(Update update, Instant deadline, Handler<RowReply> handler) override;
  void transact(std::vector<Update> updates, std::string token, Instant deadline,
                Handler<RowsReply> handler) override;
  void query_due(QueryDue query, Instant deadline, Handler<PageReply> handler) override;
  void query_owned(std::string owner, Instant deadline, Handler<RowsReply> handler) override;
  void changes(ChangeListener listener) override { store_.changes(std::move(listener)); }
  [[nodiscard]] Capabilities capabilities() const override { return store_.capabilities(); }
  [[nodiscard]] ConsumedByKind consumed() const override { return store_.consumed(); }
  void close(std::function<void()> done) override { store_.close(std::move(done)); }

 private:
  enum Kind : std::size_t {
    k_initialize,
    k_get,
    k_batch_get,
    k_update,
    k_transact,
    k_query_due,
    k_query_owned,
    kinds
  };
  using Outcomes = std::array<std::int64_t, 5>;

  template <class T>
  Handler<Reply<T>> counted(Kind kind, Handler<Reply<T>> handler) {
    // Shared, because a store may still answer after this decorator has gone.
    return [counts = counts_, kind, handler = std::move(handler)](Reply<T>&& reply) {
      ++(*counts)[kind][static_cast<std::size_t>(reply.outcome)];
      handler(std::move(reply));
    };
  }

  Store& store_;
  std::shared_ptr<std::array<Outcomes, kinds>> counts_ = std::make_shared<std::array<Outcomes, kinds>>();
};

}  // namespace holdfast
