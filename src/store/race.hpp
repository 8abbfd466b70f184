#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "store/diagnosis.hpp"

namespace holdfast::store {

/// What came of one round of a race: every writer asks for the same next epoch of one row, at the same time.
struct RaceRound {
  enum class Told {
    won,
    lost,
    nothing,  ///< surely nothing was done: the store was busy
    unknown,  ///< no answer, or a conflict that may be with an earlier try of the same write
  };
  std::vector<Told> told;            ///< one for each writer
  bool read = false;                 ///< the row could be read afterwards
  std::optional<std::size_t> found;  ///< whose mark it bore then; nothing: nobody's of this round
};

struct RaceResult {
  std::vector<RaceRound> rounds;
  std::optional<Error> error;  ///< why no more were run
};

/// Whether conditional writes exclude (F32): of each round's writers one won, and what it wrote is what is there. A
/// store that only says that it has them (replicas where the last writer wins) lets two win, or loses what it
/// confirmed.
[[nodiscard]] Finding judge_race(const RaceResult& result);

/// How a race reaches the table. Writes must not be put in order by whoever carries them out.
struct RaceParts {
  Loop& loop;
  std::function<void(Update, Instant, Handler<RowReply>)> write;
  std::function<void(std::string, Instant, Handler<RowReply>)> read;
};
inline constexpr std::size_t race_writers = 16;
inline constexpr std::size_t race_rounds = 3;

/// Runs it on a row of its own, whose key nobody has (`scratch_key()`). The row is REMOVED from its first write on,
/// was never anybody's, and has a tombstone that has soon passed: nobody can claim it, no list has it, and the
/// table's TTL, `init`, or SQLite at its next opening, deletes it. `done` is called once, on the loop, soon after the
/// deadline at the latest. The parts must outlive it.
void race(RaceParts parts, std::string key, Instant deadline, std::function<void(RaceResult)> done);
/// `DOCTOR#` and 128 random bits.
[[nodiscard]] std::string scratch_key();
inline constexpr std::string_view scratch_prefix = "DOCTOR#";

}  // namespace holdfast::store
