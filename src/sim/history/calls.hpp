#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/types.hpp"
#include "sim/history/verdict.hpp"

namespace holdfast::sim {

// Histories of calls, as their callers saw them: not what the table was asked, but what a coordinator told. Each is
// judged by whether the answers can be explained by calls that each happened at one instant between invocation and
// return. A call that did not return, or of which it is not known what became of it, happened at any time after its
// invocation, or never; one of which was told that surely nothing happened never did.

/// decide(): the first proposal wins.
struct DecideCall {
  std::string proposal;
  Instant invoked{};
  std::optional<Instant> returned{};
  std::string value{};  ///< that the caller was told
  bool never = false;   ///< surely nothing happened
};
using DecideCalls = std::vector<DecideCall>;
[[nodiscard]] Verdict check_decide(const DecideCalls& calls);

/// add(): each operation once, never below a floor by a subtraction. The value that is told is the counter's at some
/// instant between the operation and the return: a reply that was lost is made up for by a read.
struct AddCall {
  std::string op;
  std::int64_t delta = 0;
  std::optional<std::int64_t> floor{};
  Instant invoked{};
  std::optional<Instant> returned{};
  enum class Told : std::uint8_t { added, refused } told = Told::added;
  std::int64_t value = 0;
  bool never = false;
};
using AddCalls = std::vector<AddCall>;
[[nodiscard]] Verdict check_counter(const AddCalls& calls);

/// Stock: goods come in, are set aside all or none, and reservations end in one of three ways, once.
struct StockCall {
  enum class Kind : std::uint8_t { add, reserve, confirm, cancel, expire } kind = Kind::add;
  std::string id;                             ///< of the operation, or of the reservation
  std::map<std::string, std::int64_t> items;  ///< add, reserve
  Instant invoked{};
  std::optional<Instant> returned{};
  enum class Told : std::uint8_t {
    done,
    refused,
    too_late,  ///< confirm: refused, perhaps for its time only, which this knows nothing of
  } told = Told::done;
  bool never = false;
};
using StockCalls = std::vector<StockCall>;
[[nodiscard]] Verdict check_stock(const StockCalls& calls);

}  // namespace holdfast::sim
