#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::sim {

/// Rare paths. Each must have been walked at least once in a nightly run, or the simulation has gone blind there.
enum class Mark : std::uint8_t {
  claim_settled,       ///< a claim met its own lost success
  renewal_settled,     ///< a renewal did
  release_settled,     ///< a release did
  renewal_adopted,     ///< a conflict showed the lease still ours: written again from there
  claim_stale,         ///< a claim met a row that was not as it had been seen
  claim_of_stopped,    ///< a claim met a row that shall not run any more
  late_write_refused,  ///< a write of a former owner arrived, and the fence refused it
  late_write_of_dead,  ///< a write arrived after its process had died
  dead_claim_won,      ///< one of these was a claim, and took the row for a dead process
  duplicate_applied,   ///< a duplicate was carried out once more and applied
  duplicate_refused,   ///< a duplicate met its own success, or another's
  late_answer,         ///< an answer came after its deadline
  epoch_two_behind,    ///< an owner still tried to write two epochs after its own
  lost_taken_over,     ///< a loss, by its reason
  lost_belief_expired,
  ended_stopped,
  ended_drained,
  ended_sink_failed,
  loss_while_stopping,   ///< the lease ended while its resource was being stopped
  left_out_by_sink,      ///< a sink left records out because their lease had ended
  pause_over_lease,      ///< a process slept through the end of its leases and woke
  woke_without_loss,     ///< a process slept for less and went on
  clock_stepped_held,    ///< a wall clock was stepped by more than the skew while leases were held
  taken_early_by_clock,  ///< wrong clocks: a lease was taken while its owner still believed
  failover_crash,
  failover_graceful,
  full_and_unowned,   ///< a worker was full while rows belonged to nobody
  name_clash,         ///< a worker met a live row of its own name
  cut_off,            ///< a resource did not stop in time
  drained,            ///< a drain that gave everything back
  drain_cut,          ///< a drain whose limit ran out
  died_draining,      ///< a process crashed while it was being drained
  sink_released_all,  ///< a sink failed for too long
  edited_while_held,
  parked,
  repeats_dropped,
  gap_recorded,
  went_back,
  unnumbered,
  retry_after_honoured,         ///< who was asked to wait connected again later
  fell_silent,                  ///< a half-open connection was found out
  history_forgotten,            ///< an upstream no longer had what was asked for
  paused_by_sink,               ///< reading rested while a sink was behind
  taken_from_plain,             ///< a lease of a plain worker ran out or was given back and was taken
  taken_by_plain,               ///< the other way round
  outage_outlived,              ///< the store was away for longer than a lease
  tombstone_revived,            ///< a removed connection was added again
  believers_changed_in_outage,  ///< a belief ended while the store was away
  reader_died,                  ///< who read the changes for all crashed
  reader_left,                  ///< the same was drained, and gave the right to read back
  reader_taken_over,            ///< another one's right to read ran out and was taken
  stream_trimmed,               ///< records of changes were gone before they were read
  stream_turned_off,            ///< there was no stream for a while
  poke_heard,                   ///< a worker was told of changes by the reader
  poke_lost,                    ///< the network lost that
  poke_refused,                 ///< somebody made one up
  closed_by_timer,              ///< a belief ended while the thread of the leases stood still, and the socket closed
  // Of coordinators.
  task_lost,                ///< a task was lost while it was held
  release_doubtful,         ///< whether a lease was given back is not known to who did
  stale_effect_refused,     ///< who had lost a task still wrote, and the fence refused it
  task_taken_over,          ///< a task was taken from who had died or slept
  once_mismatch,            ///< another input was told so
  once_held,                ///< what was abandoned is left to a person
  once_abandoned,           ///< it was run again, by who was told that somebody had begun
  once_replayed,            ///< a recorded result was told again
  once_finished_late,       ///< a result came after the lease had ended
  once_result_refused,      ///< a result did not stand
  once_result_unknown,      ///< whether a result stands is not known to who had it
  once_run_anew,            ///< a result was past its retention
  decision_of_another,      ///< another proposal had won
  operation_mismatch,       ///< an id was used again for something else
  operation_repeated,       ///< an addition was repeated, and known
  below_floor_refused,      ///< a subtraction was refused
  reservation_refused,      ///< there was too little
  reservation_ended_twice,  ///< an end was repeated, and known
  reservation_returned,     ///< what nobody confirmed came back
  confirmed_too_late,       ///< who confirmed came after that
  send_repeated,            ///< a message was sent again, and known
  late_settlement_refused,  ///< a consumer came too late
  moved_away,               ///< a message was poison, and moved
  group_parked,             ///< the same, and its group set aside
  group_taken_over,         ///< a group was taken from a consumer that had died or slept
  ticket_provisional,       ///< something was accepted without the store
  ticket_confirmed,         ///< settled: it happened
  ticket_rejected,          ///< settled: it never does
  sold_from_quota,          ///< goods were sold without the store
  compensated,              ///< a rejected ticket was made good for
  compensation_repeated,    ///< the same, again, after a failure or a death
  compensation_given_up,    ///< one that did not end was waited for no longer
};
inline constexpr std::size_t marks_count = static_cast<std::size_t>(Mark::compensation_given_up) + 1;

[[nodiscard]] std::string_view name_of(Mark mark);

class Marks {
 public:
  void hit(Mark mark) { ++counts_[static_cast<std::size_t>(mark)]; }
  void add(const Marks& other) {
    for (std::size_t i = 0; i < marks_count; ++i) counts_[i] += other.counts_[i];
  }
  [[nodiscard]] std::uint64_t count(Mark mark) const { return counts_[static_cast<std::size_t>(mark)]; }

 private:
  std::array<std::uint64_t, marks_count> counts_{};
};

}  // namespace holdfast::sim
