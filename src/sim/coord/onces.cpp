#include "sim/coord/onces.hpp"

#include <algorithm>
#include <utility>

#include "core/coord/names.hpp"
#include "core/coord/once.hpp"

namespace holdfast::sim::coordinated {

using namespace std::chrono_literals;
using Abandoned = OnceOptions::Abandoned;

namespace {

/// What a run records: so that it is known whose it is.
std::string content_of(std::size_t number, std::int16_t process, std::int64_t epoch) {
  return "o" + std::to_string(number) + " by p" + std::to_string(process) + " under " + std::to_string(epoch);
}

}  // namespace

struct Onces::Call {
  Node& node;
  std::size_t number = 0;
  std::int32_t about = -1;
  Instant since{};  // true time
  std::string fingerprint{};
  coord::Coordinator::Turn turn{};
  std::string content{};
  bool is_late = false;  // its result came after its lease
  bool ended = false;
};

Onces::Onces(Stage& stage, std::size_t count) : LeasedScene(stage), count_(count), keys_(count) {
  for (std::size_t i = 0; i < count_; ++i) hot_.push_back(i);
}

Abandoned Onces::policy_of(std::size_t number) {
  constexpr std::array policies{Abandoned::rerun, Abandoned::hold, Abandoned::reconcile};
  return policies.at(number % policies.size());
}

void Onces::act(Node& node) {
  Random& random = node.random();
  const std::size_t place = random.below(count_);
  if (!stage_.at_the_end && random.below(6) == 0) hot_[place] = keys_++;  // a new key takes the old one's place
  const auto call = std::make_shared<Call>(Call{.node = node});
  call->number = hot_[place];
  if (stage_.at_the_end) {
    if (!std::exchange(counted_, true)) {
      for (const auto& [number, key] : known_) to_end_.push_back(number);
    }
    if (to_end_.empty()) return;
    call->number = to_end_.back();
    to_end_.pop_back();
  }
  (void)known_[call->number];
  call->about = subject(Kind::once, call->number);
  call->since = stage_.world.now();
  call->fingerprint = random.below(12) == 0 && !stage_.at_the_end ? "another" : "usual";
  OnceOptions options;
  options.key = "o" + std::to_string(call->number);
  options.fingerprint = call->fingerprint;
  options.abandoned = policy_of(call->number);
  const coord::TaskOptions task = draw_task(random);
  coord::Coordinator::OnceEvents events;
  events.turn = [this, call](const Ended<coord::Coordinator::Turn>& ended) { turned(call, ended); };
  events.lost = [](LossReason) {};
  events.finished = [this, call](const Ended<std::optional<OnceResult>>& ended) { finished(call, ended); };
  node.begin();
  stage_.calls(node.number(), call->about, Verb::once);
  node.coordinator().once(std::move(options), task, std::move(events));
}

void Onces::turned(const std::shared_ptr<Call>& call, const Ended<coord::Coordinator::Turn>& ended) {
  stage_.hears(call->node.number(), call->about, Verb::once, how(ended),
               ended && ended->held ? ended->held->epoch().value : 0);
  Marks& marks = stage_.world.marks;
  const Row* const row = stage_.row(LookOnce::row_key("o" + std::to_string(call->number)));
  const std::string_view there = row == nullptr ? std::string_view() : row->text(coord::fingerprint);
  if (!ended) {
    if (ended.error().kind == Failure::Kind::mismatch) {
      marks.hit(Mark::once_mismatch);
      if (there == call->fingerprint && !known_[call->number].was_run_anew()) {
        stage_.broken("F24", "its caller is told that the input was another, but it was the same", call->about);
      }
    } else if (stage_.at_the_end && ended.error().kind == Failure::Kind::busy) {
      to_end_.push_back(call->number);
    } else if (stage_.at_the_end) {
      stage_.broken("liveness", "nobody can run it: " + ended.error().error.detail, call->about);
    }
    return call->node.end();
  }
  if (there != call->fingerprint && !known_[call->number].was_run_anew()) {
    stage_.broken("F24", "its caller has another input, and is not told so", call->about);
  }
  if (ended->done) was_told(*call, *ended->done);
  if (ended->hold) {
    marks.hit(Mark::once_held);
    if (policy_of(call->number) != Abandoned::hold)
      stage_.broken("F22", "it is held, against its policy", call->about);
  }
  if (!ended->held) return call->node.end();
  call->turn = *ended;
  leases_.believes(call->about, call->node, call->turn.held->guard());
  const std::int64_t epoch = call->turn.held->epoch().value;
  if (call->turn.was_abandoned) marks.hit(Mark::once_abandoned);
  if (known_[call->number].abandoned_before[epoch] != call->turn.was_abandoned) {
    stage_.broken("F22",
                  std::string("who runs it is not told rightly whether somebody had begun before: ") +
                      (call->turn.was_abandoned ? "yes" : "no"),
                  call->about);
  }
  run(call);
}

/// Everybody is told the result that stands.
void Onces::was_told(const Call& call, const OnceDone& done) {
  stage_.world.marks.hit(Mark::once_replayed);
  const std::vector<Result>& all = known_[call.number].results;
  const bool stood = std::ranges::any_of(
      all, [&](const Result& result) { return result.content == done.result.content && result.until >= call.since; });
  if (!stood)
    stage_.broken("F23", "its caller is told '" + done.result.content + "', which stands nowhere", call.about);
}

void Onces::run(const std::shared_ptr<Call>& call) {
  const Duration lease = stage_.terms().lease;
  const Duration time = call->node.random().between(Duration::zero(), 3 * lease / 2);
  call->node.loop().call_after(time, [this, call] {
    const std::uint64_t drawn = call->node.random().below(10);
    if (drawn < 7 || stage_.at_the_end) return finish(call);
    if (drawn < 9) return call->turn.held->leave();  // it is not known how far it came
    call->turn.held->release({});                    // it did nothing: to be run again
  });
}

void Onces::finish(const std::shared_ptr<Call>& call) {
  const Epoch epoch = call->turn.held->epoch();
  call->content = content_of(call->number, call->node.number(), epoch.value);
  OnceResult result;
  result.content = call->content;
  result.at = call->node.loop().wall();
  const Duration lease = stage_.terms().lease;
  const Duration retention = call->number % 4 == 3 ? 3 * lease : Duration(24h);
  stage_.calls(call->node.number(), call->about, Verb::finish);
  if (call->node.coordinator().finish(call->turn, result, retention)) return;
  stage_.world.marks.hit(Mark::once_finished_late);
  if (call->turn.held->guard()->holds(call->node.own_now())) {
    stage_.broken("F23", "its result is refused although it still holds it", call->about);
  }
  call->turn.held->leave();
  record_late(call, std::move(result), retention);
}

/// While nobody else has had the key it is as good as on time.
void Onces::record_late(const std::shared_ptr<Call>& call, OnceResult result, Duration retention) {
  call->is_late = true;
  call->node.coordinator().record(
      "o" + std::to_string(call->number), call->turn.held->epoch(), std::move(result), retention,
      2 * stage_.terms().lease, [this, call](const Ended<OnceResult>& ended) {
        if (!ended && ended.error().kind == Failure::Kind::refused) refused(*call);
        if (!ended || (ended->content == call->content && recorded_.contains(call->content))) return;
        stage_.broken("F23", "its caller is told that '" + call->content + "' stands, late, and it does not",
                      call->about);
      });
}

void Onces::refused(const Call& call) {
  stage_.world.marks.hit(Mark::once_result_refused);
  // What had been recorded, and was past its retention by a clock that is wrong, stands no more.
  const std::vector<Result>& all = known_[call.number].results;
  if (!all.empty() && all.back().content == call.content && all.back().until == Instant::max()) {
    stage_.broken("F23", "its caller is told that '" + call.content + "' does not stand, and it does", call.about);
  }
  refused_.insert(call.content);
}

void Onces::finished(const std::shared_ptr<Call>& call, const Ended<std::optional<OnceResult>>& ended) {
  if (std::exchange(call->ended, true)) stage_.broken("S5", "its end is told twice", call->about);
  stage_.hears(call->node.number(), call->about, Verb::finish, how(ended));
  if (ended && *ended && !recorded_.contains((*ended)->content)) {
    stage_.broken("F23", "its caller is told that '" + (*ended)->content + "' stands, and it does not", call->about);
  }
  // Of one that comes late only the lease has ended here.
  if (!ended && ended.error().kind == Failure::Kind::refused && !call->is_late) refused(*call);
  if (!ended && ended.error().kind == Failure::Kind::unknown) stage_.world.marks.hit(Mark::once_result_unknown);
  call->node.end();
}

void Onces::wrote(const Write& write) {
  for (const Write::Left& left : write.rows) {
    if (!left.after->key.starts_with(coord::once_prefix)) continue;
    const std::size_t number = std::stoul(left.after->key.substr(coord::once_prefix.size() + 1));
    const std::int32_t about = subject(Kind::once, number);
    leases_.wrote(about, left, write.origin, stage_.terms().skew);
    const std::int64_t epoch = left.after->number(attribute::epoch);
    const bool was_owned = left.before != nullptr && !left.before->text(attribute::owner).empty();
    if (left.before == nullptr || epoch > left.before->number(attribute::epoch)) {
      known_[number].abandoned_before[epoch] = was_owned;
      if (was_owned && policy_of(number) == Abandoned::hold) {
        stage_.broken("F22", "what was abandoned is run again, although a person is to decide", about);
      }
    }
    recorded(number, left, write.origin);
  }
}

void Onces::recorded(std::size_t number, const Write::Left& left, const Origin& origin) {
  const std::int32_t about = subject(Kind::once, number);
  const std::optional<OnceResult> was = left.before == nullptr ? std::nullopt : once_result_in(*left.before);
  const std::optional<OnceResult> is = once_result_in(*left.after);
  if (was && is && was->content == is->content) return;
  std::vector<Result>& all = known_[number].results;
  if (was) {
    // Only what is past its retention makes room, by a clock that may be ahead.
    const auto until = WallTime(std::chrono::seconds(left.before->number(attribute::tombstone_expires_at)));
    const bool is_over = stage_.true_wall() + stage_.wall_error_most() >= until;
    if (is || !is_over) stage_.broken("F23", "the result '" + was->content + "' is replaced", about);
    if (!all.empty()) all.back().until = stage_.world.now();
    stage_.world.marks.hit(Mark::once_run_anew);
  }
  if (!is) return;
  const std::string of_this = content_of(number, origin.process, left.after->number(attribute::epoch));
  if (is->content != of_this) {
    stage_.broken("F23", "the result '" + is->content + "' is recorded as if it were '" + of_this + "'", about);
  }
  if (refused_.contains(is->content)) {
    stage_.broken("F23", "the result '" + is->content + "' is recorded after its caller was told that it is not",
                  about);
  }
  recorded_.insert(is->content);
  all.push_back({is->content, stage_.world.now()});
}

std::string Onces::left() {
  if (counted_ && to_end_.empty()) return {};
  return "there is what was not run to its end";
}

}  // namespace holdfast::sim::coordinated
