#pragma once
#include <atomic>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "holdfast/store.hpp"

namespace holdfast::store {

// The calls of the contract as values, so that they can wait in a queue and be carried out by another thread.
struct Initialize {};
struct Get {
  std::string key;
};
struct BatchGet {
  std::vector<std::string> keys;
};
struct Transact {
  std::vector<Update> updates;
  std::string token{};  ///< see Store::transact()
};
struct QueryOwned {
  std::string owner;
};
using Request = std::variant<Initialize, Get, BatchGet, Update, Transact, QueryDue, QueryOwned>;

using Answer = std::variant<RowReply, RowsReply, PageReply, Reply<std::string>>;
using AnyHandler =
    std::variant<Handler<RowReply>, Handler<RowsReply>, Handler<PageReply>, Handler<Reply<std::string>>>;

[[nodiscard]] bool is_write(const Request& request);

/// What is wrong with a request whatever the table holds, the same in every store; nothing where it is fine. The
/// limits are DynamoDB's, so that what works in one store works in all.
[[nodiscard]] std::optional<Error> check(const Request& request);
/// The same for the value of an attribute alone.
[[nodiscard]] std::optional<Error> check_value(const Value& value);
inline constexpr std::size_t key_bytes_max = 2048;
inline constexpr std::size_t row_bytes_max = 400 * 1024;
inline constexpr std::size_t updates_max = 100;       ///< in one transact()
inline constexpr std::size_t page_rows_max = 10'000;  ///< a larger limit is taken as this

/// One call on its way: from the loop, perhaps through another thread, back to the loop.
struct Operation {
  enum class Stage {
    waiting,    ///< nobody has begun it; whoever moves it on from here decides what becomes of it
    begun,      ///< being carried out
    withdrawn,  ///< its deadline passed, or the store was closed, before it was begun: it will never be
  };

  Operation(Request&& request_, Instant deadline_, AnyHandler&& handler_)
      : request(std::move(request_)), deadline(deadline_), handler(std::move(handler_)) {}

  [[nodiscard]] bool begin() { return move_on(Stage::begun); }
  [[nodiscard]] bool withdraw() { return move_on(Stage::withdrawn); }
  [[nodiscard]] bool withdrawn() const { return stage.load(std::memory_order_acquire) == Stage::withdrawn; }

  /// The answer of the right type to this request that says only this.
  [[nodiscard]] Answer failure(Outcome outcome, Error error) const;
  /// Calls the handler. Once, on the loop.
  void respond(Answer&& answer);

  const Request request;
  const Instant deadline;
  AnyHandler handler;
  std::atomic<Stage> stage = Stage::waiting;

 private:
  bool move_on(Stage to) {
    Stage from = Stage::waiting;
    return stage.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }
};

}  // namespace holdfast::store
