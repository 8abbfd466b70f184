#include "store/request_store.hpp"

#include <utility>

namespace holdfast::store {

void RequestStore::initialize(Instant deadline, Handler<Reply<std::string>> handler) {
  accept(Initialize{}, deadline, std::move(handler));
}

void RequestStore::get(std::string key, Instant deadline, Handler<RowReply> handler) {
  accept(Get{std::move(key)}, deadline, std::move(handler));
}

void RequestStore::batch_get(std::vector<std::string> keys, Instant deadline, Handler<RowsReply> handler) {
  accept(BatchGet{std::move(keys)}, deadline, std::move(handler));
}

void RequestStore::update(Update update, Instant deadline, Handler<RowReply> handler) {
  accept(std::move(update), deadline, std::move(handler));
}

void RequestStore::transact(std::vector<Update> updates, std::string token, Instant deadline,
                            Handler<RowsReply> handler) {
  accept(Transact{std::move(updates), std::move(token)}, deadline, std::move(handler));
}

void RequestStore::query_due(QueryDue query, Instant deadline, Handler<PageReply> handler) {
  accept(std::move(query), deadline, std::move(handler));
}

void RequestStore::query_owned(std::string owner, Instant deadline, Handler<RowsReply> handler) {
  accept(QueryOwned{std::move(owner)}, deadline, std::move(handler));
}

void RequestStore::close(std::function<void()> done) {
  if (std::exchange(closed_, true)) return loop_.post(std::move(done));
  shut(std::move(done));
}

void RequestStore::accept(Request request, Instant deadline, AnyHandler handler) {
  auto operation = std::make_shared<Operation>(std::move(request), deadline, std::move(handler));
  const auto refuse = [&](Outcome outcome, Error error) {
    loop_.post([operation, answer = operation->failure(outcome, std::move(error))]() mutable {
      operation->respond(std::move(answer));
    });
  };
  if (closed_) return refuse(Outcome::rejected, {Code::usage, "the store was closed before this call"});
  if (auto problem = check(operation->request)) return refuse(Outcome::rejected, std::move(*problem));
  if (deadline <= loop_.instant()) {
    return refuse(Outcome::throttled, {Code::unavailable, "the deadline had passed before the call was made"});
  }
  submit(std::move(operation));
}

}  // namespace holdfast::store
