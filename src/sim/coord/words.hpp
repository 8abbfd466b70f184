#pragma once
#include <cstdint>
#include <string>
#include <string_view>

/// The coordinators in the simulation: short-lived processes that use them, and those who look whether each keeps
/// what it promises (src/sim/coord/README.md).
namespace holdfast::sim::coordinated {

/// What a call, a rule or a row is about: a kind and a number, which together are one subject in the trace.
enum class Kind : std::uint8_t { task, once, decision, counter, stock, reservation, group, ticket };
[[nodiscard]] std::int32_t subject(Kind kind, std::size_t number);
/// "task1", "group0"; empty where it is none.
[[nodiscard]] std::string name_of_subject(std::int32_t subject);

/// What a coordinator is called for.
enum class Verb : std::uint8_t {
  acquire,
  effect,
  release,
  once,
  finish,
  decide,
  add,
  reserve,
  confirm,
  cancel,
  give_back_expired,
  send,
  receive,
  ack,
  nack,
  extend,
  park,
  redrive,
  accept,
  set_aside,
  reconcile,
  compensate,
};
[[nodiscard]] std::string_view words_of(Verb verb);

/// What a call came to, as its caller is told: a result, what kind of Failure, or what only some calls have.
enum class How : std::uint8_t {
  done,
  unavailable,
  unknown,
  busy,
  mismatch,
  refused,
  rejected,
  lost,
  provisional,
  nothing,
};
[[nodiscard]] std::string_view words_of(How how);

}  // namespace holdfast::sim::coordinated
