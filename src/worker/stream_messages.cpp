// The part of Stream that every message goes through.
#include <algorithm>
#include <utility>

#include "worker/report.hpp"
#include "worker/stream.hpp"

namespace holdfast::worker {
namespace {

constexpr std::size_t records_max = 1024;  // handed over at once, so that tiny messages do not make a huge batch

}  // namespace

void Stream::on_message(const ws::Message& message) {
  if (phase_ != Phase::open) return;  // being stopped: what comes now will be sent again to the successor
  group_.reader_ = this;
  if (!seq_pointer_) {
    const std::optional<std::int64_t> seq = sequence_.next();
    if (!seq) return numbers_used_up();
    add(message, *seq);
  } else if (const auto seq = message.binary ? std::nullopt : group_.seq_reader_.read(message.data, *seq_pointer_);
             !seq) {
    ++batch_.unnumbered;
    ++unnumbered_in_row_;
    if (options_->seq_missing == StreamOptions::SeqMissing::deliver) add(message, Record::no_seq);
  } else {
    unnumbered_in_row_ = 0;
    const Sequence::Seen seen = sequence_.see(*seq);
    if (seen.went_back) ++batch_.seq_went_back;
    if (seen.repeat) {  // F41
      ++batch_.repeats_dropped;
      ++repeats_in_row_;
      last_repeat_ = *seq;
      return;
    }
    if (seen.hole() && !options_->seq_sparse) add_gap(seen.hole_from, seen.hole_to);
    add(message, *seq);
  }
  if (group_.records_.size() >= records_max) hand_over();
}

void Stream::numbers_used_up() {
  hand_over();
  if (phase_ != Phase::open) return;
  if (silence_timer_ != 0) loop_.cancel(std::exchange(silence_timer_, 0));
  park("its numbers are used up: last_seq is " + std::to_string(sequence_.last()) +
       ", and there is none above; remove the connection and add it under another name");
}

void Stream::on_batch_end() {
  if (phase_ != Phase::open || group_.reader_ != this) return;
  hand_over();
}

Record& Stream::add_record() {
  auto& records = group_.records_;
  if (records.empty()) batch_at_ = loop_.wall();
  Record& record = records.emplace_back();
  record.connection = grant_.id.value;
  record.epoch = grant_.guard->epoch();
  record.at = batch_at_;
  record.guard = &grant_.guard;
  return record;
}

void Stream::add(const ws::Message& message, std::int64_t seq) {
  Record& record = add_record();
  record.kind = message.binary ? Record::Kind::binary : Record::Kind::text;
  record.seq = seq;
  record.data = message.data;
  ++batch_.messages;
  batch_.bytes += static_cast<std::int64_t>(message.data.size());
  repeats_in_row_ = 0;
}

void Stream::add_gap(std::int64_t from, std::int64_t to) {
  Record& record = add_record();
  record.kind = Record::Kind::gap;
  record.seq = from;
  record.gap_to = to;
  ++batch_.gaps;
}

/// The records of this read, or of its first part, go to the sink.
void Stream::hand_over() {
  if (!holds()) return lease_over();  // S7: the last look before the effect; cut() drops the records
  group_.reader_ = nullptr;
  const bool fresh = batch_.messages > 0;
  Mark mark;
  if (!group_.records_.empty()) {
    mark = {group_.sink_.write(group_.records_), sequence_.last()};
    group_.records_.clear();
  }
  {
    const std::lock_guard lock(mutex_);
    worker::add(tally_, batch_);
    if (fresh && !first_message_at_) first_message_at_ = batch_at_;
    if (mark.position != 0) {
      newest_ = mark;
      if (in_flight_.position == 0) in_flight_ = mark;
    }
    advance_marks();
  }
  batch_ = {};
  if (lacks_checkpoint_) seek_first_checkpoint();
  const bool told_of_repeats = std::exchange(shows_repeats_, repeats_in_row_ > 0);
  if (fresh) data_at_ = loop_.instant();
  const bool news = fresh && (!delivered_ || silent_);
  if (fresh) delivered_ = true;
  if (fresh && std::exchange(silent_, false)) watch_silence();
  if (group_.sink_.behind()) {
    pause();
  } else if (news || told_of_repeats || shows_repeats_ || unnumbered_changed()) {
    show_open_status();
  }
}

/// Whether the status should tell another number of messages without one: told at each doubling, not at each read.
bool Stream::unnumbered_changed() const {
  if (unnumbered_in_row_ < unnumbered_worth_a_word) return unnumbered_shown_ > 0;
  return unnumbered_in_row_ >= 2 * unnumbered_shown_;
}

/// Two marks are enough, however much is under way: the oldest that is awaited, and the newest, which takes its
/// place. acknowledged_seq_ lags behind by at most what was handed over between two looks (S9).
void Stream::advance_marks() const {
  if (in_flight_.position == 0) return;
  const Position acknowledged = group_.sink_.acknowledged();
  // A sink that leaves records out revokes their guard before it moves its position past them: what it tells from
  // then on is not about delivered messages. Nothing may be checkpointed by it, whoever still believes.
  if (grant_.guard->revoked()) return;
  while (in_flight_.position != 0 && in_flight_.position <= acknowledged) {
    acknowledged_seq_ = std::max(acknowledged_seq_, in_flight_.seq);
    in_flight_ = newest_.position > in_flight_.position ? newest_ : Mark{};
  }
}

/// S9: without a checkpoint a successor cannot tell that something is missing, so the first is brought about soon.
void Stream::seek_first_checkpoint() {
  {
    const std::lock_guard lock(mutex_);
    advance_marks();
    lacks_checkpoint_ = acknowledged_seq_ == 0;
  }
  if (!lacks_checkpoint_) return grant_.first_checkpoint();
  if (sequence_.last() == 0) return;  // nothing with a number yet
  if (!std::exchange(asked_for_flush_, true)) group_.sink_.flush();
  group_.wait_for_sink(*this);
}

/// F39: what is not read stays in TCP's buffers, and then with the sender.
void Stream::pause() {
  group_.wait_for_sink(*this);
  if (std::exchange(paused_, true)) return;
  connection_->pause();
  show_open_status();
}

void Stream::sink_moved() {
  if (lacks_checkpoint_) seek_first_checkpoint();
  if (phase_ == Phase::stopping) return go_on_stopping();
  if (phase_ != Phase::open || !paused_) return;
  if (!holds()) return lease_over();
  if (group_.sink_.behind()) return group_.wait_for_sink(*this);
  paused_ = false;
  data_at_ = loop_.instant();
  connection_->resume();
  show_open_status();
}

}  // namespace holdfast::worker
