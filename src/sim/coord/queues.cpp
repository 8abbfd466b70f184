#include "sim/coord/queues.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/coord/names.hpp"

namespace holdfast::sim::coordinated {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 3> queues{"plain", "parking", "moving"};
constexpr std::string_view dead_letters = "dead";
constexpr std::int64_t receives_most = 3;

}  // namespace

struct Queues::Send {
  Node& node;
  Message message;
  std::int32_t about = -1;
};

struct Queues::Work {
  Node& node;
  std::size_t more = 0;  // batches
  std::string queue{};
  std::int32_t about = -1;
  Duration visibility{};
  Batch batch{};
  std::shared_ptr<LeaseGuard> guard{};
  Instant asked_at{};  // own time
};

Queues::Group& Queues::group(const std::string& key) {
  const auto [found, is_new] = groups_.try_emplace(key);
  if (is_new) found->second.number = groups_.size() - 1;
  return found->second;
}

/// Its consumers fail at each of these, until all is well.
bool Queues::is_bad(const std::string& queue, const std::string& id) {
  return queue != queues[0] && queue != dead_letters && std::stoul(id.substr(1)) % 7 == 3;
}

void Queues::act(Node& node) {
  if (stage_.at_the_end) {
    for (const auto& [key, group] : groups_) {
      const Row* const row = stage_.row(key);
      const auto there = row == nullptr ? std::nullopt : group_in(*row);
      if (there && there->state == holdfast::Group::State::parked) return redrive(node, there->queue, there->group);
    }
    return receive(node, 40);
  }
  if (node.random().below(2) == 0) return send(node);
  receive(node, 1 + node.random().below(4));
}

// ---- Sending ----

void Queues::send(Node& node) {
  Random& random = node.random();
  Message message;
  // Again, with the same id: its sender died, or does not know what came of it.
  const std::size_t recent = std::min<std::size_t>(tried_.size(), 6);
  if (recent > 0 && random.below(4) == 0) message = tried_[tried_.size() - 1 - random.below(recent)];
  const bool is_new = message.id.empty() || stage_.world.now() - message.first_tried > 6 * stage_.terms().lease;
  if (is_new) {
    message.id = "m" + std::to_string(messages_++);
    message.queue = queues.at(random.below(queues.size()));
    message.group = "g" + std::to_string(random.below(count_));
    message.first_tried = stage_.world.now();
    tried_.push_back(message);
    asked_[message.id] = {stage_.world.now(), Instant::max()};
  }
  const auto call = std::make_shared<Send>(Send{node, message});
  call->about = subject(Kind::group, group(group_key(message.queue, message.group)).number);
  SendOptions options;
  options.queue = message.queue;
  options.group = message.group;
  options.body = "body of " + message.id;
  options.dedup_id = message.id;
  // Longer than its senders try, and the network keeps what they sent.
  options.dedup_window = std::max<Duration>(10min, 20 * stage_.terms().lease);
  const Duration lease = stage_.terms().lease;
  if (random.below(6) == 0) options.delay = random.between(0ms, lease);
  node.begin();
  stage_.calls(node.number(), call->about, Verb::send);
  auto sending = std::make_unique<holdfast::Send>(
      std::move(options), node.own_now() + random.between(lease / 4, 2 * lease), node.loop().random());
  node.coordinator().run(std::move(sending), [this, call](const Ended<Sent>& ended) { sent(call, ended); });
}

void Queues::sent(const std::shared_ptr<Send>& call, const Ended<Sent>& ended) {
  stage_.hears(call->node.number(), call->about, Verb::send, how(ended), ended ? ended->seq : 0);
  const auto known = seq_of_.find(dedup_key(call->message.queue, call->message.id));
  if (ended) {
    auto& until = asked_[call->message.id].second;
    until = std::min(until, stage_.world.now());
    if (known == seq_of_.end() || known->second != ended->seq) {
      stage_.broken("F29", "its sender is told number " + std::to_string(ended->seq) + ", which it is not",
                    call->about);
    }
    if (ended->was_duplicate) stage_.world.marks.hit(Mark::send_repeated);
  }
  call->node.end();
}

// ---- Receiving ----

void Queues::receive(Node& node, std::size_t batches) {
  const auto work = std::make_shared<Work>(Work{.node = node, .more = batches});
  work->queue = queues.at(node.random().below(queues.size()));
  if (node.random().below(5) == 0) work->queue = dead_letters;
  node.begin();
  next(work);
}

void Queues::next(const std::shared_ptr<Work>& work) {
  if (work->more == 0) return work->node.end();
  --work->more;
  Random& random = work->node.random();
  const Duration lease = stage_.terms().lease;
  work->visibility = random.between(lease / 2, 2 * lease);
  ReceiveOptions options;
  options.queue = work->queue;
  options.max = 1 + random.below(4);
  options.visibility = work->visibility;
  options.skew = stage_.terms().skew;
  coord::Coordinator::Poison poison;
  if (work->queue != queues[0] && work->queue != dead_letters) options.receives_most = receives_most;
  poison.parks = work->queue != queues[2];
  poison.dead_letter = dead_letters;
  work->asked_at = work->node.own_now();
  stage_.calls(work->node.number(), -1, Verb::receive);
  work->node.coordinator().receive(std::move(options), poison, random.between(0ms, lease),
                                   random.between(lease / 4, 2 * lease),
                                   [this, work](const Ended<std::optional<Batch>>& ended) { received(work, ended); });
}

void Queues::received(const std::shared_ptr<Work>& work, const Ended<std::optional<Batch>>& ended) {
  const bool is_batch = ended && *ended;
  const std::int32_t about =
      is_batch ? subject(Kind::group, group(group_key((*ended)->receipt.queue, (*ended)->receipt.group)).number) : -1;
  stage_.hears(work->node.number(), about, Verb::receive,
               is_batch ? How::done
               : ended  ? How::nothing
                        : how(ended),
               is_batch ? (*ended)->receipt.epoch.value : 0);
  if (!is_batch) return work->node.end();
  work->about = about;
  work->batch = **ended;
  got(work, work->batch);
}

void Queues::got(const std::shared_ptr<Work>& work, const Batch& batch) {
  const Receipt& receipt = batch.receipt;
  Group& group = this->group(group_key(receipt.queue, receipt.group));
  work->guard = std::make_shared<LeaseGuard>(receipt.epoch, batch.until);
  leases_.believes(work->about, work->node, work->guard);
  auto& given = group.given_to[receipt.epoch.value];
  given = std::max(given, receipt.last);
  std::int64_t seq = receipt.first;
  bool has_bad = false;
  for (const holdfast::Message& message : batch.messages) {
    if (message.seq != seq++) stage_.broken("F30", "a batch has a hole", work->about);
    const auto id = group.ids.find(message.seq);
    if (id == group.ids.end() || message.body != "body of " + id->second) {
      stage_.broken("F30", "a message is given out that was not sent so: '" + message.body + "'", work->about);
      continue;
    }
    if (message.deliver_at >
        stage_.true_wall() + std::chrono::ceil<std::chrono::milliseconds>(stage_.wall_error_most())) {
      stage_.broken("F30", "a delayed message is given out before its time", work->about);
    }
    has_bad = has_bad || is_bad(receipt.queue, id->second);
    group.dequeued.push_back({receipt.queue + "#" + receipt.group, id->second, receipt.epoch, stage_.world.now(),
                              "p" + std::to_string(work->node.number())});
  }
  Random& random = work->node.random();
  const Duration time = random.between(0ms, random.below(5) == 0 ? 2 * work->visibility : work->visibility / 2);
  const std::uint64_t drawn = stage_.at_the_end ? 0 : random.below(10);
  work->node.loop().call_after(time, [this, work, drawn, has_bad] {
    Settlement settlement;
    settlement.count = work->batch.receipt.last - work->batch.receipt.first + 1;
    if (has_bad && !stage_.at_the_end) {
      settlement.kind = Settlement::Kind::nack;
      return settle(work, settlement, Verb::nack);
    }
    if (drawn < 6) return settle(work, settlement, Verb::ack);
    if (drawn == 6) {
      settlement.count = 1;
      return settle(work, settlement, Verb::ack);
    }
    if (drawn == 7) {
      settlement.kind = Settlement::Kind::extend;
      settlement.visibility = work->visibility;
      return settle(work, settlement, Verb::extend);
    }
    if (drawn == 8) {
      settlement.kind = Settlement::Kind::nack;
      settlement.delay = work->node.random().between(0ms, stage_.terms().lease / 2);
      return settle(work, settlement, Verb::nack);
    }
    next(work);  // it forgets what it was given
  });
}

void Queues::settle(const std::shared_ptr<Work>& work, Settlement settlement, Verb verb) {
  const Duration lease = stage_.terms().lease;
  work->asked_at = work->node.own_now();
  // Who is done with all of it, or gives it back, has no more effects.
  const bool is_last = verb == Verb::nack ||
                       (verb == Verb::ack && work->batch.receipt.first + settlement.count > work->batch.receipt.last);
  if (is_last) work->guard->revoke();
  stage_.calls(work->node.number(), work->about, verb);
  auto settling = std::make_unique<Settle>(work->batch.receipt, settlement,
                                           work->node.own_now() + work->node.random().between(lease / 4, 2 * lease),
                                           work->node.loop().random());
  work->node.coordinator().run(std::move(settling), [this, work, settlement, verb](const Ended<Settled>& ended) {
    settled(work, settlement, verb, ended);
  });
}

void Queues::settled(const std::shared_ptr<Work>& work, const Settlement& settlement, Verb verb,
                     const Ended<Settled>& ended) {
  const Receipt& receipt = work->batch.receipt;
  stage_.hears(work->node.number(), work->about, verb, how(ended), ended ? ended->left : 0);
  const Row* const row = stage_.row(group_key(receipt.queue, receipt.group));
  if (ended && verb == Verb::ack && row->number(coord::head) < receipt.first + settlement.count) {
    stage_.broken("S5", "its consumer is told that it is acknowledged, and it is not", work->about);
  }
  if (!ended && ended.error().kind == Failure::Kind::refused) {
    stage_.world.marks.hit(Mark::late_settlement_refused);
    if (row->text(attribute::owner) == receipt.owner.value && row->number(attribute::epoch) == receipt.epoch.value) {
      stage_.broken("F31", "its consumer is refused although the group is its own", work->about);
    }
  }
  if (verb == Verb::extend && ended) {
    const bool was_in_time = work->guard->holds(work->node.own_now());
    if (was_in_time) (void)work->guard->extend(believed_until(work->asked_at, settlement.visibility));
    Settlement rest;
    rest.count = receipt.last - receipt.first + 1;
    const Duration pause = work->node.random().between(0ms, work->visibility);
    work->node.loop().call_after(pause, [this, work, rest] { settle(work, rest, Verb::ack); });
    return;
  }
  if (work->guard && !work->guard->revoked()) work->guard->revoke();
  next(work);
}

void Queues::redrive(Node& node, const std::string& queue, const std::string& group) {
  const std::int32_t about = subject(Kind::group, this->group(group_key(queue, group)).number);
  node.begin();
  stage_.calls(node.number(), about, Verb::redrive);
  auto driving =
      std::make_unique<Redrive>(queue, group, false, node.own_now() + stage_.terms().lease, node.loop().random());
  node.coordinator().run(std::move(driving), [this, &node, about](const Ended<Settled>& ended) {
    stage_.hears(node.number(), about, Verb::redrive, how(ended));
    node.end();
  });
}

// ---- What the table does ----

void Queues::wrote(const Write& write) {
  for (const Write::Left& left : write.rows) {
    const std::string& key = left.after->key;
    if (key.starts_with(coord::queue_prefix)) {
      group_left(write, left);
    } else if (key.starts_with(coord::dedup_prefix)) {
      const std::int64_t seq = left.after->number(coord::seq);
      if (seq == 0) continue;  // precluded
      if (left.before != nullptr && left.before->number(coord::seq) != seq) {
        stage_.broken("F29", "an id is sent twice: " + key, -1);
      }
      seq_of_[key] = seq;
    }
  }
}

void Queues::group_left(const Write& write, const Write::Left& left) {
  const Row& after = *left.after;
  Group& group = this->group(after.key);
  const std::int32_t about = subject(Kind::group, group.number);
  leases_.wrote(about, left, write.origin, stage_.terms().skew);
  const std::int64_t head = after.number(coord::head);
  const std::int64_t tail = after.number(coord::tail);
  stage_.world.note(Happening::Kind::left, write.origin.process, about, 0, after.number(attribute::epoch), head);
  const std::int64_t head_before = left.before == nullptr ? 1 : left.before->number(coord::head);
  const std::int64_t tail_before = left.before == nullptr ? 0 : left.before->number(coord::tail);
  if (head < head_before) stage_.broken("S5", "the head goes back to " + std::to_string(head), about);
  if (tail < tail_before || tail > tail_before + 1) stage_.broken("F30", "the tail leaps", about);
  if (tail == tail_before + 1) {
    const std::string prefix = std::string(coord::message_prefix) + std::string(after.text(coord::queue)) + "#";
    const Write::Left* const message = write.find(prefix);
    if (message == nullptr || message->after->number(coord::seq) != tail) {
      return stage_.broken("F30", "the tail moves without a message", about);
    }
    const std::string id(message->after->text(coord::dedup_id));
    group.ids[tail] = id;
    const std::string name = std::string(after.text(coord::queue)) + "#" + std::string(after.text(coord::group));
    const auto asked = asked_.find(id);
    const bool is_moved = after.text(coord::queue) == dead_letters;
    if (is_moved) stage_.world.marks.hit(Mark::moved_away);
    // When its sender began and ended is noted as it is known at the end.
    group.enqueued.push_back({name, id, is_moved || asked == asked_.end() ? stage_.world.now() : asked->second.first,
                              is_moved ? stage_.world.now() : Instant::max()});
  }
  if (head > head_before) {
    // What is acknowledged was given out, to whom it is acknowledged by; or it is poison that is moved away.
    const std::int64_t epoch = left.before->number(attribute::epoch);
    const auto given = group.given_to.find(epoch);
    const std::int64_t last = given == group.given_to.end() ? 0 : given->second;
    const bool moves = write.rows.size() > 1;
    // Whether anybody was given it does not matter: those who should have been may have died each time.
    if (moves) std::erase_if(group.enqueued, [&](const Enqueued& one) { return one.item == group.ids[head_before]; });
    if (!moves && head - 1 > last) {
      stage_.broken("S9", "number " + std::to_string(head - 1) + " is acknowledged, which was not given out", about);
    }
  }
  if (left.before != nullptr && after.text(attribute::desired_state) == parked_state(after.text(coord::queue)) &&
      left.before->text(attribute::desired_state) != after.text(attribute::desired_state)) {
    stage_.world.marks.hit(Mark::group_parked);
  }
  const bool is_claim =
      left.before != nullptr && after.number(attribute::epoch) > left.before->number(attribute::epoch);
  if (is_claim && !left.before->text(attribute::owner).empty()) stage_.world.marks.hit(Mark::group_taken_over);
}

bool Queues::was_sent(const std::string& queue, const std::string& id) const {
  return seq_of_.contains(dedup_key(queue, id));
}

std::string Queues::left() {
  for (const auto& [key, group] : groups_) {
    const Row* const row = stage_.row(key);
    if (row == nullptr) continue;  // nobody's message arrived
    if (row->number(coord::head) <= row->number(coord::tail)) return key + " still has messages";
  }
  return {};
}

void Queues::judge() {
  for (auto& [key, group] : groups_) {
    for (Enqueued& one : group.enqueued) {
      const auto asked = asked_.find(one.item);
      const bool is_moved = key.starts_with(std::string(coord::queue_prefix) + std::string(dead_letters));
      if (asked != asked_.end() && !is_moved) one.until = asked->second.second;
    }
    std::set<std::string> ids;
    for (const auto& [seq, id] : group.ids) {
      if (!ids.insert(id).second) stage_.broken("F29", id + " is in it twice", subject(Kind::group, group.number));
    }
    // Where clocks are wrong by any amount two may be given parts of one group, each in order.
    if (!stage_.clocks_keep_promise()) continue;
    const auto& enqueued = group.enqueued;
    std::erase_if(group.dequeued, [&enqueued](const Dequeued& one) {
      return std::ranges::find(enqueued, one.item, &Enqueued::item) == enqueued.end();
    });
    if (const Verdict verdict = check_fifo(group.enqueued, group.dequeued); !verdict.good()) {
      stage_.broken("F30", verdict.words, subject(Kind::group, group.number));
    }
  }
}

}  // namespace holdfast::sim::coordinated
