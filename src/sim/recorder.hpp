#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "sim/history/operation.hpp"
#include "sim/history/verdict.hpp"
#include "sim/table.hpp"
#include "store/request.hpp"

namespace holdfast::sim {

/// What was asked of the table and what came of it, as each asker saw it, on true time: for the checkers of
/// histories.
class Recorder {
 public:
  void asked(const std::string& client, const store::Request& request, Instant now);
  void answered(const store::Request& request, const store::Answer& answer, Instant now);
  /// An update by people, who wait for it and have no network.
  void carried_out(const std::string& client, const Update& update, const RowReply& reply, Instant now);
  /// A copy that the network made: an operation of its own, of which nobody hears.
  void copied(const std::string& client, const Update& update, Instant invoked);

  [[nodiscard]] const History& history() const { return history_; }
  /// Linearizable per row; one owner per epoch, rising; no checkpoint below a higher epoch's.
  [[nodiscard]] Verdict judge() const;

 private:
  History history_;
  std::unordered_map<const void*, std::size_t> open_;  // by request; looked up only
};

}  // namespace holdfast::sim
