#pragma once
#include <cstdint>
#include <string>
#include <utility>

namespace holdfast::sim {

/// What a checker found. `undecided` means that it gave up within its limits; it is never a pass.
struct Verdict {
  enum class Kind : std::uint8_t { good, bad, undecided };
  Kind kind = Kind::good;
  std::string words;  ///< bad, undecided: what was found, with the operations and their times; several lines

  [[nodiscard]] bool good() const { return kind == Kind::good; }
  [[nodiscard]] bool bad() const { return kind == Kind::bad; }

  static Verdict pass() { return {}; }
  static Verdict fault(std::string words) { return {Kind::bad, std::move(words)}; }
  static Verdict give_up(std::string words) { return {Kind::undecided, std::move(words)}; }
};

}  // namespace holdfast::sim
