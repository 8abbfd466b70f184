#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"

namespace holdfast::cli {

/// One line of a sink's file.
struct SinkRecord {
  std::string connection;
  std::int64_t epoch = 0;
  std::int64_t at_ms = 0;
  std::int64_t seq = 0;                ///< for a gap: the first missing number
  std::optional<std::int64_t> gap_to;  ///< a gap, not a message
};
[[nodiscard]] Result<SinkRecord> parse_sink_record(std::string_view line);

/// What the files of all workers say together, judged against what was asked for: messages 1 to `messages` of
/// each connection. Records of one owner are added in the order of its file; owners in any order.
class DeliveryHistory {
 public:
  DeliveryHistory(std::vector<std::string> connections, std::int64_t messages);

  /// `owner` is one worker's one incarnation: nobody else writes to its files.
  void add(std::string_view owner, const SinkRecord& record);
  /// A line that is no record. (A last line cut short by a crash is not to be added at all: it was never
  /// acknowledged.)
  void add_damaged(std::string_view owner, std::string_view why);

  [[nodiscard]] std::int64_t delivered() const { return delivered_; }  ///< different messages
  [[nodiscard]] bool complete() const { return delivered_ == expected_; }

  struct Verdict {
    std::int64_t delivered = 0;
    std::int64_t missing = 0;
    std::int64_t repeats = 0;
    std::int64_t gaps = 0;
    /// Records under an older epoch after the first one under a newer epoch, epochs that went back within one
    /// owner's file, and records of an epoch that another owner has, too.
    std::int64_t overlaps = 0;
    std::int64_t strangers = 0;         ///< records of messages or connections that were not asked for, and damage
    std::vector<std::string> problems;  ///< in words, the first ones
    [[nodiscard]] bool holds() const { return missing == 0 && gaps == 0 && overlaps == 0 && strangers == 0; }
  };
  [[nodiscard]] Verdict verdict() const;

  /// How those connections went on whose last record by `at_ms` was from `owner`.
  struct Failover {
    std::size_t connections = 0;
    std::size_t resumed = 0;                 ///< of these, by somebody else
    std::int64_t ms_median = 0, ms_max = 0;  ///< from at_ms to the first record under the next epoch
  };
  [[nodiscard]] Failover failover(std::string_view owner, std::int64_t at_ms) const;

 private:
  struct Tenure {
    std::string owner;
    std::int64_t first_ms = 0;
    std::vector<std::int64_t> at_ms;
  };
  struct Connection {
    std::vector<bool> seen;                                       // by seq - 1
    std::map<std::int64_t, Tenure> tenures;                       // by epoch
    std::map<std::string, std::int64_t, std::less<>> last_epoch;  // by owner, in the order of its file
  };
  void judge_tenure(const std::string& id, Connection& connection, std::string_view owner, const SinkRecord& record);
  void problem(std::string words);
  [[nodiscard]] std::int64_t late_records(const Connection& connection, std::string* example) const;

  std::map<std::string, Connection, std::less<>> connections_;
  std::int64_t messages_;
  std::int64_t expected_;
  std::int64_t delivered_ = 0, repeats_ = 0, gaps_ = 0, shared_or_back_ = 0, strangers_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace holdfast::cli
