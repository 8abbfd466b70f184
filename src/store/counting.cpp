#include "store/counting.hpp"

#include <string_view>
#include <utility>

namespace holdfast {

std::map<std::string, std::map<std::string, std::int64_t>> CountingStore::counts() const {
  constexpr std::array<std::string_view, kinds> names{"initialize", "get",       "batch_get",  "update",
                                                      "transact",   "query_due", "query_owned"};
  std::map<std::string, std::map<std::string, std::int64_t>> result;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    for (std::size_t outcome = 0; outcome < Outcomes{}.size(); ++outcome) {
      const std::int64_t count = (*counts_)[kind][outcome];
      if (count != 0) result[std::string(names[kind])][std::string(to_string(static_cast<Outcome>(outcome)))] = count;
    }
  }
  return result;
}

void CountingStore::initialize(Instant deadline, Handler<Reply<std::string>> handler) {
  store_.initialize(deadline, counted(k_initialize, std::move(handler)));
}

void CountingStore::get(std::string key, Instant deadline, Handler<RowReply> handler) {
  store_.get(std::move(key), deadline, counted(k_get, std::move(handler)));
}

void CountingStore::batch_get(std::vector<std::string> keys, Instant deadline, Handler<RowsReply> handler) {
  store_.batch_get(std::move(keys), deadline, counted(k_batch_get, std::move(handler)));
}

void CountingStore::update(Update update, Instant deadline, Handler<RowReply> handler) {
  store_.update(std::move(update), deadline, counted(k_update, std::move(handler)));
}

void CountingStore::transact(std::vector<Update> updates, std::string token, Instant deadline,
                             Handler<RowsReply> handler) {
  store_.transact(std::move(updates), std::move(token), deadline, counted(k_transact, std::move(handler)));
}

void CountingStore::query_due(QueryDue query, Instant deadline, Handler<PageReply> handler) {
  store_.query_due(std::move(query), deadline, counted(k_query_due, std::move(handler)));
}

void CountingStore::query_owned(std::string owner, Instant deadline, Handler<RowsReply> handler) {
  store_.query_owned(std::move(owner), deadline, counted(k_query_owned, std::move(handler)));
}

}  // namespace holdfast
