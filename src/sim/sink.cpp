#include "sim/sink.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

SimSink::SimSink(World& world, Rules& rules, Loop& loop, std::int16_t process, std::uint64_t seed)
    : world_(world), rules_(rules), loop_(loop), process_(process), random_(seed) {}

Position SimSink::write(std::span<const Record> records) {
  Batch batch;
  for (const Record& record : records) {
    ++accepted_;
    const std::int32_t connection = connection_of_name(record.connection);
    if (full_ && loop_.instant() > full_since_) {
      rules_.broken("S10", "p" + std::to_string(process_) + " gives its sink a record although it is full",
                    connection);
    }
    batch.guard = *record.guard;
    rules_.offered(process_, connection, record, loop_.instant());
    if (record.seq == Record::no_seq) continue;
    const bool gap = record.kind == Record::Kind::gap;
    if (gap) check_gap(record, connection);
    const std::int64_t to = gap ? record.gap_to : record.seq;
    // Numbers that follow one another are kept as one.
    if (!batch.records.empty() && !gap && !batch.records.back().gap && batch.records.back().to + 1 == record.seq) {
      batch.records.back().to = to;
    } else {
      batch.records.push_back({connection, record.seq, to, gap});
    }
  }
  batch.last = accepted_;
  queue_.push_back(std::move(batch));
  if (timer_ == 0) {
    work_after(world_.strikes(Fault::sink_slow, random_) ? random_.between(100ms, world_.plan.terms.lease * 2)
                                                         : random_.between(100us, 20ms));
  }
  return accepted_;
}

/// S9: a gap is a hole of the upstream's, never of ours.
void SimSink::check_gap(const Record& record, std::int32_t connection) {
  for (const SimConnector* net : nets_) {
    const std::int64_t after = net->resumed_after(connection);
    if (after < 0) continue;
    if (net->was_sent(connection, record.seq, record.gap_to)) {
      rules_.broken("S9",
                    "a gap is recorded from " + std::to_string(record.seq) + " to " + std::to_string(record.gap_to) +
                        ", but some of that had come",
                    connection);
    }
    if (record.seq <= after) {
      rules_.broken("S9",
                    "a gap is recorded from " + std::to_string(record.seq) +
                        ", but the upstream was asked to go on after " + std::to_string(after),
                    connection);
    }
  }
}

void SimSink::work_after(Duration time) {
  timer_ = loop_.call_after(time, [this] {
    timer_ = 0;
    work();
  });
}

void SimSink::work() {
  if (stalled_ || failing_ || queue_.empty()) return;
  while (!queue_.empty()) {
    const Batch& batch = queue_.front();
    if (!make_durable(batch)) {
      world_.marks.hit(Mark::left_out_by_sink);
      world_.note(Happening::Kind::left_out, process_, batch.records.empty() ? -1 : batch.records.front().connection,
                  0, batch.guard->epoch().value);
    }
    acknowledged_ = batch.last;
    queue_.pop_front();
  }
  tell();
}

bool SimSink::make_durable(const Batch& batch) {
  if (!batch.guard->holds(loop_.instant())) {  // S7
    batch.guard->revoke();
    return false;
  }
  for (const Kept& one : batch.records) {
    world_.note(Happening::Kind::written, process_, one.connection, one.from, batch.guard->epoch().value, one.to);
    rules_.durable(process_, one.connection, batch.guard->epoch(), one.from, one.to, one.gap);
  }
  return true;
}

std::optional<Error> SimSink::failure() const {
  if (!failing_) return std::nullopt;
  return Error(Code::exhausted, "no space left on device");
}

void SimSink::flush() {
  if (timer_ == 0 || stalled_ || failing_) return;
  loop_.cancel(timer_);
  work_after(random_.between(0us, 5ms));
}

void SimSink::stall(bool on) {
  stalled_ = on;
  if (!on && timer_ == 0) work_after(0ms);
}

void SimSink::fail(bool on) {
  failing_ = on;
  if (!on && timer_ == 0) work_after(0ms);
  tell();
}

void SimSink::fill(bool on) {
  full_ = on;
  full_since_ = loop_.instant();
  tell();
}

void SimSink::die() {
  if (failing_) return;
  for (std::size_t left = random_.below(queue_.size() + 1); left > 0; --left) {
    if (!make_durable(queue_.front())) return;
    queue_.pop_front();
  }
}

}  // namespace holdfast::sim
