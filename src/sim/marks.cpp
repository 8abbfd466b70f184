#include "sim/marks.hpp"

namespace holdfast::sim {
namespace {

constexpr std::array<std::string_view, marks_count> names{"claim_settled",
                                                          "renewal_settled",
                                                          "release_settled",
                                                          "renewal_adopted",
                                                          "claim_stale",
                                                          "claim_of_stopped",
                                                          "late_write_refused",
                                                          "late_write_of_dead",
                                                          "dead_claim_won",
                                                          "duplicate_applied",
                                                          "duplicate_refused",
                                                          "late_answer",
                                                          "epoch_two_behind",
                                                          "lost_taken_over",
                                                          "lost_belief_expired",
                                                          "ended_stopped",
                                                          "ended_drained",
                                                          "ended_sink_failed",
                                                          "loss_while_stopping",
                                                          "left_out_by_sink",
                                                          "pause_over_lease",
                                                          "woke_without_loss",
                                                          "clock_stepped_held",
                                                          "taken_early_by_clock",
                                                          "failover_crash",
                                                          "failover_graceful",
                                                          "full_and_unowned",
                                                          "name_clash",
                                                          "cut_off",
                                                          "drained",
                                                          "drain_cut",
                                                          "died_draining",
                                                          "sink_released_all",
                                                          "edited_while_held",
                                                          "parked",
                                                          "repeats_dropped",
                                                          "gap_recorded",
                                                          "went_back",
                                                          "unnumbered",
                                                          "retry_after_honoured",
                                                          "fell_silent",
                                                          "history_forgotten",
                                                          "paused_by_sink",
                                                          "taken_from_plain",
                                                          "taken_by_plain",
                                                          "outage_outlived",
                                                          "tombstone_revived",
                                                          "believers_changed_in_outage",
                                                          "reader_died",
                                                          "reader_left",
                                                          "reader_taken_over",
                                                          "stream_trimmed",
                                                          "stream_turned_off",
                                                          "poke_heard",
                                                          "poke_lost",
                                                          "poke_refused",
                                                          "closed_by_timer"};

}  // namespace

std::string_view name_of(Mark mark) {
  return names[static_cast<std::size_t>(mark)];
}

}  // namespace holdfast::sim
