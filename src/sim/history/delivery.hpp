#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/types.hpp"
#include "sim/history/verdict.hpp"

namespace holdfast::sim {

/// An item that the source made. Items of one connection have numbers that follow one another, as `seq` says.
struct Produced {
  std::string connection;
  std::int64_t seq = 0;
  std::string item;  ///< what it is, told apart from every other item of the connection
  Instant at{};
};

/// A record that a reader found in a sink, in the order of the sink.
struct Delivered {
  std::string connection;
  Epoch epoch;
  std::int64_t seq = 0;
  std::string item;
  Instant at{};
  std::string by;  ///< who wrote it, for the words
};

/// A record that says: these numbers, first and last included, were not to be had.
struct Gap {
  std::string connection;
  Epoch epoch;
  std::int64_t first = 0;
  std::int64_t last = 0;
  Instant at{};
};

/// Counted beside the verdict, so that a test can demand what the verdict cannot know (no gaps on this upstream).
struct Account {
  Verdict verdict;
  std::size_t produced = 0;
  std::size_t counted_once = 0;  ///< different (connection, seq) among the records
  std::size_t repeats = 0;       ///< records whose (connection, seq) had been there before
  std::size_t covered = 0;       ///< items that are missing and that a gap covers
};

/// S9: every item is there at least once, or a gap covers it; what is there was produced, not before it was, and
/// under the number that it was produced under; repeats have the number of the first and no lower epoch, so that who
/// drops repeats by (connection, seq) counts every item once; under one epoch numbers rise. A gap may not cover an
/// item that its own epoch delivered, nor one that was produced only later.
[[nodiscard]] Account account(const std::vector<Produced>& produced, const std::vector<Delivered>& delivered,
                              const std::vector<Gap>& gaps);

/// An item that was put into an ordered group, from its request to its reply.
struct Enqueued {
  std::string group;
  std::string item;
  Instant from{};
  Instant until{};  ///< Instant::max(): no reply came, so it may come after anything that was put in later
};

/// An item as a consumer got it, in the order of the group's deliveries.
struct Dequeued {
  std::string group;
  std::string item;
  Epoch epoch;  ///< of the consumer's lease on the group
  Instant at{};
  std::string by;
};

/// First deliveries keep the order in which items surely were put in; nothing is delivered that was not put in; a
/// later consumer may repeat what an earlier one had, one and the same epoch repeats nothing and goes back nowhere.
/// An item that is never delivered is a fault only if a later one of its group was.
[[nodiscard]] Verdict check_fifo(const std::vector<Enqueued>& enqueued, const std::vector<Dequeued>& dequeued);

}  // namespace holdfast::sim
