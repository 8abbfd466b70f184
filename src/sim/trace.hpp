#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/types.hpp"

namespace holdfast::sim {

/// What happened, in a form that costs nothing to write down and to hash. The numbers' meaning depends on the kind
/// (see describe() in trace.cpp).
struct Happening {
  enum class Kind : std::uint8_t {
    asked,         ///< a request leaves a process: a = kind of request, b = its epoch, c = its deadline
    carried_out,   ///< the table did it: a = outcome, b = epoch in the row, c = its last_seq
    answered,      ///< a process hears of it: a = outcome
    granted,       ///< a resource starts: b = epoch, c = last_seq
    told_to_stop,  ///< a = reason, b = epoch
    let_go,        ///< the resource is destroyed: b = epoch
    written,       ///< a sink has made records durable: b = epoch, a..c = numbers
    left_out,      ///< a sink leaves records out: b = epoch
    opened,        ///< an upstream is open: a = resumed after
    closed,        ///< an upstream connection ended: a = how
    fault,         ///< something was done to it: a = which
    process,       ///< a process starts (a=1), is asked to drain (2), has ended (3), is gone (4)
    people,        ///< somebody edits a row: a = what
    plain,         ///< a plain worker believes: c = until
    calls,         ///< a coordinator is called: a = what for (coord/words.hpp)
    hears,         ///< what that came to: a = what for, b = how, c = a number that says more
    left,          ///< a write has left a coordinator's row: b = its epoch, c = its number, if it has one
  };
  Instant at{};
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  std::int32_t connection = -1;
  std::int16_t process = -1;
  Kind kind = Kind::fault;
};

/// The stream of everything that happens: hashed always, kept only as far back as asked for.
class Trace {
 public:
  explicit Trace(std::size_t keep) : keep_(keep) {}

  void add(const Happening& happening) {
    mix(static_cast<std::uint64_t>(happening.at.time_since_epoch().count()));
    mix(static_cast<std::uint64_t>(happening.a));
    mix(static_cast<std::uint64_t>(happening.b));
    mix(static_cast<std::uint64_t>(happening.c));
    mix((static_cast<std::uint64_t>(static_cast<std::uint32_t>(happening.connection)) << 32U) ^
        (static_cast<std::uint64_t>(static_cast<std::uint16_t>(happening.process)) << 8U) ^
        static_cast<std::uint64_t>(happening.kind));
    ++count_;
    if (keep_ == 0) return;
    if (last_.size() < keep_) {
      last_.push_back(happening);
    } else {
      last_[next_] = happening;
      next_ = next_ + 1 == keep_ ? 0 : next_ + 1;
    }
  }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The latest ones that concern the connection (or, with -1, all), oldest first, at most `most`.
  [[nodiscard]] std::vector<Happening> last(std::int32_t connection, std::size_t most) const;

 private:
  void mix(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15U;
    hash_ ^= hash_ >> 32U;
  }
  const std::size_t keep_;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
  std::uint64_t count_ = 0;
  std::size_t next_ = 0;
  std::vector<Happening> last_;
};

/// One line.
[[nodiscard]] std::string describe(const Happening& happening);

}  // namespace holdfast::sim
