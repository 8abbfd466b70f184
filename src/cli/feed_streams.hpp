#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/types.hpp"

namespace holdfast::cli {

struct FeedOptions {
  std::string listen = "127.0.0.1";
  std::uint16_t port = 8080;  ///< 0: one that is free
  std::size_t streams = 10;
  double rate = 1;              ///< messages per second of each stream
  std::size_t history = 1000;   ///< messages of each stream that can be asked for again
  std::size_t size = 32;        ///< bytes of each message's "data"
  std::int64_t messages = 0;    ///< each stream falls silent after so many; 0: never
  std::int64_t begin_with = 0;  ///< nothing is said before so many clients listen at once; 0: from the start
  std::int64_t close_every = 0;
  std::uint16_t close_code = 1001;
  std::int64_t drop_every = 0;
};

/// What the feed says, apart from any socket: stream `s0` … `s(N-1)`, each numbered from 1, and all of them on
/// one clock. The messages of all streams are one row of beats, dealt out in turn, so that phases are spread and
/// one timer is enough. A message is its number and time; its text is made when it is sent, so that the history
/// costs 8 bytes per message and a slow reader costs nothing.
class FeedStreams {
 public:
  explicit FeedStreams(const FeedOptions& options);

  /// Beats are counted from here. Until then nothing is due.
  void begin(Instant start);
  /// Everything that is due by now has been said; tells each stream that has something new, perhaps repeatedly.
  /// Beats that were missed for more than a second (the process stood still) are left out, not made up for.
  void advance(Now now, const std::function<void(std::size_t stream)>& said);
  /// When the next message is due; nothing before the beginning and when all have fallen silent.
  [[nodiscard]] std::optional<Instant> next_due() const;

  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  [[nodiscard]] std::int64_t latest(std::size_t stream) const { return streams_[stream].latest; }
  [[nodiscard]] std::int64_t oldest(std::size_t stream) const;  ///< latest + 1 where nothing is kept
  /// The message's text; `seq` is between oldest() and latest().
  [[nodiscard]] std::string render(std::size_t stream, std::int64_t seq) const;

 private:
  struct Stream {
    std::int64_t latest = 0;
    std::deque<std::int64_t> at_ms;  // of the messages kept, oldest first
  };
  [[nodiscard]] Instant due_at(std::uint64_t beat) const;

  std::size_t history_;
  std::size_t size_;
  double beats_per_second_;
  std::uint64_t beats_max_;  // UINT64_MAX: no end
  bool begun_ = false;
  Instant start_{};         // beats are counted from here…
  std::uint64_t base_ = 0;  // …beginning with this one
  std::uint64_t beats_ = 0;
  std::vector<Stream> streams_;
};

/// What a client asked for: `/stream/NAME?since=SEQ`.
struct FeedRequest {
  std::string stream;
  std::optional<std::int64_t> since;
};
/// Nothing where the target is another one; a since that is no number is in `bad_since`.
[[nodiscard]] std::optional<FeedRequest> parse_feed_target(std::string_view target, bool& bad_since);

}  // namespace holdfast::cli
