#include "worker/stream.hpp"

#include <algorithm>
#include <utility>

#include "core/number.hpp"
#include "holdfast/assert.hpp"
#include "runtime/secret.hpp"
#include "runtime/units.hpp"
#include "worker/one_line.hpp"

namespace holdfast::worker {
namespace {

// Longer than all limits of the opening together: what keeps silent about its own failure is cut (F43).
constexpr Duration connect_limit = std::chrono::seconds(60);
// How long stop() and an edit wait for the other side's close frame. It is a courtesy: the lease is what counts.
constexpr Duration close_limit = std::chrono::milliseconds(500);
constexpr std::size_t said_bytes_max = 200;
constexpr Duration tell_again_after = std::chrono::minutes(1);

std::string hour_and_minute(WallTime time) {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(time.time_since_epoch()).count() % (24 * 60);
  const auto two_digits = [](std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return two_digits(minutes / 60) + ":" + two_digits(minutes % 60);
}

ConnectionEnd end_of(const ws::Closed& closed) {
  ConnectionEnd end;
  end.code = closed.code;
  end.http_status = closed.http_status;
  end.retry_after = closed.retry_after;
  switch (closed.kind) {
    case ws::Closed::Kind::refused:
      end.kind = ConnectionEnd::Kind::refused;
      break;
    case ws::Closed::Kind::closed:
    case ws::Closed::Kind::protocol:
      end.kind = ConnectionEnd::Kind::closed;
      break;
    case ws::Closed::Kind::failed:
    case ws::Closed::Kind::local:
      end.kind = ConnectionEnd::Kind::failed;
      break;
  }
  return end;
}

std::string what_happened(const ws::Closed& closed, const ConnectionEnd& end) {
  if (end.kind == ConnectionEnd::Kind::failed)
    return closed.error.detail.empty() ? explain(end) : closed.error.detail;
  std::string what = explain(end);
  const bool ours = closed.kind == ws::Closed::Kind::protocol;
  if (!closed.reason.empty()) what += (ours ? " Why: " : " It said: ") + one_line(closed.reason, said_bytes_max);
  return what;
}

}  // namespace

Stream::Stream(StreamGroup& group) : group_(group), loop_(group.loop_), id_(++group.last_id_) {}

Stream::~Stream() {
  cut();
  for (const TimerId timer : {guard_timer_, timer_, silence_timer_})
    if (timer != 0) loop_.cancel(timer);
  group_.forget(*this);
}

// Its life.

void Stream::start(Grant grant) {
  HOLDFAST_ASSERT(phase_ == Phase::idle && grant.guard != nullptr, "a stream is started once, under a lease");
  grant_ = std::move(grant);
  begin_after(grant_.row);
  lacks_checkpoint_ = sequence_known_ && sequence_.last() == 0 && grant_.first_checkpoint;
  if (!holds()) return lease_over();
  watch_guard();
  if (configure(grant_.row)) connect();
}

void Stream::begin_after(const Row& row) {
  const std::optional<std::int64_t> last_seq = last_seq_of(row);
  sequence_known_ = last_seq.has_value();
  sequence_ = Sequence(last_seq.value_or(0));
  const std::lock_guard lock(mutex_);
  acknowledged_seq_ = sequence_.last();
}

void Stream::park(const std::string& why) {
  cancel_timer();
  cut();
  phase_ = Phase::parked;
  show_trouble(phase_, why, "tried again when its row is edited");
}

/// False, and parked, where the row makes no sense.
bool Stream::configure(const Row& row) {
  Result<StreamOptions> options = StreamOptions::from_row(row);
  if (!options) {
    options_.reset();
    park(options.error().detail);
    return false;
  }
  if (!sequence_known_) begin_after(row);  // somebody may have mended it
  if (!sequence_known_) {
    options_.reset();
    // From 0 on everything would come again; over what is there nothing may be written (S9).
    park("last_seq is " + describe(*row.find(attribute::last_seq)) +
         ": set it to the number of the last message that was received, or 0 for none");
    return false;
  }
  options_ = *std::move(options);
  seq_pointer_.reset();
  if (!options_->seq_pointer.empty()) seq_pointer_.emplace(options_->seq_pointer);
  resume_template_ = ResumeTemplate::parse(options_->resume_message).value();  // was checked with the rest
  return true;
}

void Stream::row_changed(const Row& row) {
  if (phase_ == Phase::idle || phase_ == Phase::stopping || phase_ == Phase::over) return;
  if (!holds()) return lease_over();
  const std::optional<StreamOptions> before = options_;
  const bool was_parked = phase_ == Phase::parked;
  if (!configure(row)) return;
  if (!was_parked && options_ == before) return;
  reconnect_.row_changed();
  told_ = Phase::idle;  // whoever edited it wants to hear how it goes now
  told_at_.reset();
  if (phase_ != Phase::open) {
    cut();
    return connect();
  }
  phase_ = Phase::reopening;
  set_status("connecting", "its row was edited");
  connection_->close(1001, "options changed");
  set_timer(loop_.instant() + close_limit, &Stream::connect);
}

void Stream::stop(LossReason reason, Instant deadline, std::function<void()> stopped) {
  stopped_ = std::move(stopped);
  if (phase_ == Phase::idle || phase_ == Phase::over) return finish();
  if (!holds()) return lease_over();
  close_code_ = reason == LossReason::stopped ? 1000 : 1001;
  stop_deadline_ = deadline;
  const bool was_open = phase_ == Phase::open;
  phase_ = Phase::stopping;
  set_status("stopping");
  if (was_open) {
    connection_->pause();
  } else {
    cut();
  }
  set_timer(deadline, &Stream::finish);
  group_.sink_.flush();
  // A sink that cannot take anything is not waited for: that is why this ends.
  if (reason == LossReason::sink_failed) {
    say_goodbye();
  } else {
    go_on_stopping();
  }
}

void Stream::go_on_stopping() {
  bool all_acknowledged = false;
  {
    const std::lock_guard lock(mutex_);
    advance_marks();
    all_acknowledged = in_flight_.position == 0;
  }
  if (all_acknowledged || group_.sink_.failed_for_good()) {
    say_goodbye();
  } else {
    group_.wait_for_sink(*this);
  }
}

void Stream::say_goodbye() {
  if (!connection_) return finish();
  if (std::exchange(closing_, true)) return;
  connection_->close(close_code_, close_code_ == 1000 ? "" : "going away");
  set_timer(std::min(stop_deadline_, loop_.instant() + close_limit), &Stream::finish);
}

void Stream::finish() {
  end_everything();
  set_status("stopped");
  if (const auto stopped = std::exchange(stopped_, nullptr)) stopped();  // last: it may destroy this
}

void Stream::end_everything() {
  phase_ = Phase::over;
  cut();
  for (TimerId* timer : {&guard_timer_, &timer_, &silence_timer_})
    if (*timer != 0) loop_.cancel(std::exchange(*timer, 0));
  group_.forget(*this);
}

// The lease.

bool Stream::holds() {
  return grant_.guard->holds(loop_.instant());
}

void Stream::watch_guard() {
  guard_timer_ = loop_.call_at(grant_.guard->until(), [this] {
    guard_timer_ = 0;
    if (!holds()) return lease_over();
    watch_guard();  // it was extended
  });
}

/// S7: nothing leaves this process under this lease any more. Revoked, so that a confirmation that comes late
/// cannot make others believe in what has ended here.
void Stream::lease_over() {
  grant_.guard->revoke();
  end_everything();
  set_status("stopped", "its lease ended");
  if (const auto stopped = std::exchange(stopped_, nullptr)) stopped();  // last: it may destroy this
}

// The connection.

Result<ws::ConnectOptions> Stream::connect_options() const {
  ws::ConnectOptions connect;
  connect.url = options_->url;
  if (!options_->resume_query.empty()) {
    const std::int64_t last = sequence_.last();
    const std::int64_t number = options_->resume_inclusive && last > 0 && last < INT64_MAX ? last + 1 : last;
    connect.url = connect.url.with_query(options_->resume_query, std::to_string(number));
  }
  for (const auto& [name, setting] : options_->headers) {
    // Anew at each connect: secrets are rotated.
    Result<std::string> value = runtime::resolve_secret(setting);
    if (!value) return fail(value.error().code, "header " + name + ": " + value.error().detail);
    if (value->find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
      return fail(Code::usage, "header " + name + ": the secret has a line break in it");
    connect.headers.emplace_back(name, *std::move(value));
  }
  connect.subprotocols = options_->subprotocols;
  connect.ca_file = options_->ca_file;
  connect.limits.message_bytes = options_->max_message_bytes;
  connect.limits.ping_every = options_->ping_every;
  connect.limits.dead_after = options_->dead_after;
  return connect;
}

void Stream::connect() {
  if (!holds()) return lease_over();
  cut();
  paused_ = silent_ = delivered_ = false;
  repeats_in_row_ = unnumbered_in_row_ = unnumbered_shown_ = 0;
  sequence_.connection_began();
  if (std::exchange(connected_before_, true)) {
    const std::lock_guard lock(mutex_);
    ++tally_.reconnects;
  }
  Result<ws::ConnectOptions> options = connect_options();
  if (!options) return ended({}, options.error().detail);
  phase_ = Phase::connecting;
  set_status("connecting", last_failure_);
  set_timer(loop_.instant() + connect_limit, &Stream::give_up_connecting);
  connection_ = group_.connector_.connect(*std::move(options), *this);
}

void Stream::give_up_connecting() {
  cut();
  ended({}, "the connection was neither opened nor refused within 60 s");
}

void Stream::on_open(const ws::Opened&) {
  if (!holds()) return lease_over();
  cancel_timer();
  phase_ = Phase::open;
  reconnect_.opened(loop_.instant());
  last_failure_.clear();
  told_ = Phase::idle;
  data_at_ = loop_.instant();
  if (!say_hello()) {
    cut();
    return ended({}, "the connection did not take the messages of 'subscribe'");
  }
  if (group_.sink_.behind()) pause();
  show_open_status();
  watch_silence();
}

/// The resume message and the subscriptions, in order (F35).
bool Stream::say_hello() {
  const std::string resume = resume_template_->render(sequence_.last(), grant_.id.value);
  const auto& subscribe = options_->subscribe;
  const bool marked = std::ranges::find(subscribe, resume_mark) != subscribe.end();
  subscribed_ = !resume.empty() || !subscribe.empty();
  if (!resume.empty() && !marked && !connection_->send(resume, false)) return false;
  return std::ranges::all_of(subscribe, [&](const std::string& message) {
    return connection_->send(message == resume_mark ? resume : message, false);
  });
}

/// F39: looked at before each read, so that many connections bring no more than one when there is no room.
void Stream::before_read() {
  if (phase_ == Phase::open && !paused_ && group_.sink_.behind()) pause();
}

void Stream::on_closed(const ws::Closed& closed) {
  if (phase_ == Phase::over) return;
  if (phase_ == Phase::open) on_batch_end();
  if (phase_ == Phase::over) return;
  connection_.reset();
  if (phase_ == Phase::stopping) return go_on_stopping();
  if (phase_ == Phase::reopening) return connect();
  const ConnectionEnd end = end_of(closed);
  ended(end, what_happened(closed, end));
}

void Stream::ended(const ConnectionEnd& end, const std::string& what) {
  if (!holds()) return lease_over();
  if (silence_timer_ != 0) loop_.cancel(std::exchange(silence_timer_, 0));
  last_failure_ = what;
  const Reconnect::Plan plan = reconnect_.ended(end, loop_.instant(), loop_.random());
  phase_ = plan.parked ? Phase::parked : Phase::waiting;
  // In wall time: whoever reads it in the row reads it later.
  const auto at = loop_.wall() + std::chrono::duration_cast<std::chrono::milliseconds>(plan.at - loop_.instant());
  show_trouble(phase_, what,
               plan.parked ? "tried again at " + hour_and_minute(at) + " UTC, or when its row is edited" : "");
  set_timer(plan.at, &Stream::connect);
}

/// The status, and a line for the log: one when it begins to be so, not one for each try (F20). It is news again once
/// it was open in between, but not within a minute.
void Stream::show_trouble(Phase phase, std::string why, const std::string& what_next) {
  if (!what_next.empty()) {
    if (why.ends_with('.')) why.pop_back();
    why += "; " + what_next;
  }
  const bool parked = phase == Phase::parked;
  const bool worse = parked && told_ != Phase::parked;
  const Instant now = loop_.instant();
  const bool recent = told_at_ && now - *told_at_ < tell_again_after;
  if (group_.troubled_ && (worse || (told_ == Phase::idle && !recent))) {
    told_ = phase;
    told_at_ = now;
    group_.troubled_({grant_.id.value, parked, why});
  }
  set_status(parked ? "parked" : "backing_off", std::move(why));
}

/// Destroys the connection, if there is one: the socket is closed at once, without a word.
void Stream::cut() {
  group_.drop_records_of(*this);
  connection_.reset();
  group_.forget(*this);
}

// Status and timers.

void Stream::set_timer(Instant when, void (Stream::*then)()) {
  cancel_timer();
  timer_ = loop_.call_at(when, [this, then] {
    timer_ = 0;
    (this->*then)();
  });
}

void Stream::cancel_timer() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
}

void Stream::set_status(std::string_view status, std::string reason) {
  const std::lock_guard lock(mutex_);
  status_ = status;
  reason_ = std::move(reason);
}

/// F42: what is true of an open connection, the most important first.
void Stream::show_open_status() {
  if (paused_) return set_status("paused", "the sink is behind");
  std::string reason;
  if (repeats_in_row_ > 0) {
    reason = std::to_string(repeats_in_row_) + " messages in a row were left out as repeats, the last with seq " +
             std::to_string(last_repeat_) + ", not above " + std::to_string(sequence_.last()) +
             "; if the upstream began its numbers anew, stop the connection and set its last_seq to 0";
  }
  unnumbered_shown_ = unnumbered_in_row_ >= unnumbered_worth_a_word ? unnumbered_in_row_ : 0;
  if (reason.empty() && unnumbered_shown_ > 0) {
    reason = "no number at " + options_->seq_pointer + " in the last " + std::to_string(unnumbered_in_row_) +
             " messages, so nothing can be resumed after them; see whether seq.pointer is right";
  }
  if (silent_) {
    if (reason.empty()) reason = "no message for " + runtime::write_duration(options_->silent_after);
    return set_status("silent", std::move(reason));
  }
  if (delivered_) return set_status("flowing", std::move(reason));
  set_status(subscribed_ ? "subscribed" : "open", std::move(reason));
}

/// F34: a quiet feed is a status, not a reason to connect again. One timer at most, never one per message.
void Stream::watch_silence() {
  if (options_->silent_after == Duration::zero() || silence_timer_ != 0) return;
  silence_timer_ = loop_.call_at(data_at_ + options_->silent_after, [this] {
    silence_timer_ = 0;
    if (phase_ != Phase::open || silent_) return;
    if (!paused_ && loop_.instant() >= data_at_ + options_->silent_after) {
      silent_ = true;  // watched again when something has come
      return show_open_status();
    }
    if (paused_) data_at_ = loop_.instant();
    watch_silence();
  });
}

Progress Stream::progress() const {
  Progress progress;
  {
    const std::lock_guard lock(mutex_);
    advance_marks();
    progress.last_seq = acknowledged_seq_;
    progress.status = status_;
    progress.reason = reason_;
    progress.tally = tally_;
    progress.first_message_at = first_message_at_;
  }
  if (progress.reason.empty() || progress.status == "paused") {
    if (const std::optional<Error> failure = group_.sink_.failure())
      progress.reason = "the sink fails: " + failure->detail;
  }
  return progress;
}

}  // namespace holdfast::worker
