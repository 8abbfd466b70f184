// Ordered queues.
#include <gmock/gmock.h>

#include <map>
#include <memory>

#include "core/coord/names.hpp"
#include "core/coord/queue.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::every_mishap;
using test::Mishap;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Settlement::Kind;

class QueueTest : public testing::Test {
 protected:
  Ended<Sent> send(std::string group, std::string body, std::string dedup_id = "", Duration delay = 0s) {
    Send sending({"q", std::move(group), std::move(body), std::move(dedup_id), delay}, run_.now.instant + 10s,
                 random_);
    run_.run(sending);
    return *sending.result();
  }
  std::optional<Batch> receive(const char* consumer = "c", std::size_t max = 10, Duration wait = 0s,
                               std::optional<std::int64_t> receives_most = std::nullopt) {
    ReceiveOptions options;
    options.queue = "q";
    options.max = max;
    options.receives_most = receives_most;
    options.wait_until = run_.now.instant + wait;
    Receive receiving(options, WorkerId(consumer), run_.now.instant + wait + 10s, random_);
    run_.run(receiving);
    EXPECT_TRUE(*receiving.result());
    return receiving.result()->value_or(std::nullopt);
  }
  Ended<Settled> settle(const Receipt& receipt, Settlement settlement) {
    Settle settling(receipt, std::move(settlement), run_.now.instant + 10s, random_);
    run_.run(settling);
    return *settling.result();
  }
  Ended<Settled> ack(const Receipt& receipt, std::int64_t count) { return settle(receipt, {Kind::ack, count}); }
  Ended<Settled> ack(const Batch& batch) { return ack(batch.receipt, batch.receipt.last - batch.receipt.first + 1); }
  Group group(std::string_view name) { return group_in(*table_.find(group_key("q", name))).value(); }

  static std::vector<std::string> bodies(const std::optional<Batch>& batch) {
    std::vector<std::string> bodies;
    if (batch) {
      for (const Message& each : batch->messages) bodies.push_back(each.body);
    }
    return bodies;
  }

  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{7};
};

TEST_F(QueueTest, what_was_sent_is_received_in_its_order) {
  EXPECT_EQ(send("g", "one")->seq, 1);
  EXPECT_EQ(send("g", "two")->seq, 2);
  EXPECT_EQ(send("g", "three")->seq, 3);
  const auto batch = receive();
  EXPECT_THAT(bodies(batch), ElementsAre("one", "two", "three"));
  EXPECT_EQ(batch->receives, 1);
  ASSERT_TRUE(ack(*batch));
  EXPECT_EQ(group("g").state, Group::State::empty);
  EXPECT_FALSE(receive());
}

TEST_F(QueueTest, a_batch_is_a_contiguous_prefix_and_what_is_acknowledged_is_a_prefix_of_it) {
  for (const char* each : {"1", "2", "3", "4", "5"}) send("g", each);
  const auto batch = receive("c", 3);
  EXPECT_THAT(bodies(batch), ElementsAre("1", "2", "3"));
  EXPECT_EQ(ack(batch->receipt, 2)->left, 3);
  EXPECT_FALSE(receive("other")) << "the third is still ours, and so is the group (F31)";
  EXPECT_EQ(settle(batch->receipt, {Kind::nack})->left, 3);
  EXPECT_THAT(bodies(receive("other")), ElementsAre("3", "4", "5"));
}

TEST_F(QueueTest, more_than_was_given_out_is_not_acknowledged) {
  for (const char* each : {"1", "2", "3"}) send("g", each);
  const auto batch = receive("c", 1);
  EXPECT_EQ(ack(batch->receipt, 2).error().kind, Failure::Kind::rejected);
  EXPECT_EQ(group("g").head, 1);
}

TEST_F(QueueTest, a_receipt_that_says_more_than_the_lease_holds_is_rejected_whatever_is_asked) {
  for (const char* each : {"1", "2", "3", "4", "5"}) send("g", each);
  ASSERT_EQ(ack(receive("c", 1)->receipt, 1)->left, 4);
  const auto batch = receive("c", 2);
  ASSERT_THAT(bodies(batch), ElementsAre("2", "3"));
  send("g", "6");
  for (const auto& [first, last] : {std::pair<std::int64_t, std::int64_t>{2, 4},
                                    {2, 6},
                                    {3, 3},
                                    {4, 5},
                                    {1, INT64_MAX},
                                    {INT64_MAX, INT64_MAX}}) {
    Receipt altered = batch->receipt;
    altered.first = first;
    altered.last = last;
    for (const Kind kind : {Kind::ack, Kind::nack, Kind::extend, Kind::park}) {
      const auto settled = settle(altered, {.kind = kind, .count = 1, .visibility = 1h});
      ASSERT_FALSE(settled) << first << " to " << last;
      EXPECT_EQ(settled.error().kind, Failure::Kind::rejected);
      EXPECT_EQ(settled.error().error.code, Code::usage);
    }
  }
  EXPECT_EQ(group("g").head, 2);
  EXPECT_EQ(ack(*batch)->left, 3) << "it is still good for what was given out";
  EXPECT_THAT(bodies(receive()), ElementsAre("4", "5", "6"));
}

TEST_F(QueueTest, what_was_acknowledged_is_not_brought_back_by_a_receipt_for_no_messages) {
  for (const char* each : {"1", "2", "3"}) send("g", each);
  Receipt altered = receive("c", 3)->receipt;
  ASSERT_TRUE(ack(altered, 2));
  altered.last = 0;
  EXPECT_EQ(ack(altered, 0)->left, 1);
  EXPECT_EQ(group("g").head, 3);
}

TEST_F(QueueTest, a_delayed_message_that_was_held_back_is_not_acknowledged_with_those_before_it) {
  send("g", "1");
  send("g", "2", "", 1min);
  Receipt altered = receive("c", 2)->receipt;
  altered.last = 2;
  EXPECT_EQ(ack(altered, 2).error().kind, Failure::Kind::rejected);
  EXPECT_EQ(group("g").size(), 2);
}

TEST_F(QueueTest, a_group_that_was_leased_before_its_row_told_how_far_is_settled_as_its_receipt_says) {
  for (const char* each : {"1", "2", "3"}) send("g", each);
  Receipt receipt = receive("c", 2)->receipt;
  table_.row(group_key("q", "g")).attributes.erase(std::string(coord::leased_last));
  receipt.last = 4;
  EXPECT_EQ(ack(receipt, 4).error().kind, Failure::Kind::rejected) << "beyond its end in no case";
  receipt.last = 2;
  EXPECT_EQ(ack(receipt, 2)->left, 1);
}

// Found by the simulation: a consumer whose clock ran slowly believed for longer than its lease and the skew.
TEST_F(QueueTest, s04_the_belief_in_a_batch_ends_a_tenth_of_its_time_before_the_lease) {
  send("g", "1");
  const Instant before = run_.now.instant;
  const std::optional<Batch> batch = receive();
  ASSERT_TRUE(batch);
  EXPECT_GT(batch->until, before + 26s);
  EXPECT_LE(batch->until, before + 27s + 10ms) << "of 30 s";
}

TEST_F(QueueTest, f31_two_consumers_never_hold_parts_of_one_group) {
  for (const char* each : {"1", "2"}) send("a", each);
  send("b", "x");
  const auto first = receive("c1");
  const auto second = receive("c2");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->receipt.group, second->receipt.group);
  EXPECT_FALSE(receive("c3"));
}

TEST_F(QueueTest, a_consumer_that_died_gives_its_group_back_by_its_expiry_and_the_skew) {
  send("g", "1");
  const auto dies = receive("c1");
  run_.pass(30s);
  EXPECT_FALSE(receive("c2"));
  run_.pass(1s);
  const auto next = receive("c2");
  EXPECT_THAT(bodies(next), ElementsAre("1"));
  EXPECT_EQ(next->receives, 2);
  EXPECT_EQ(next->receipt.epoch.value, dies->receipt.epoch.value + 1);
  const auto late = ack(*dies);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Failure::Kind::refused) << "a late consumer's word does not count (S2)";
  EXPECT_EQ(group("g").head, 1);
}

TEST_F(QueueTest, f30_only_the_group_of_a_failing_message_waits) {
  send("bad", "1");
  send("bad", "2");
  send("good", "x");
  for (int i = 0; i < 2; ++i) {
    const auto batch = receive();
    if (batch->receipt.group == "bad") {
      ASSERT_TRUE(settle(batch->receipt, {.kind = Kind::nack, .delay = 1h}));
    } else {
      ASSERT_TRUE(ack(*batch));
    }
  }
  EXPECT_FALSE(receive()) << "its successor does not pass it";
  send("good", "y");
  EXPECT_THAT(bodies(receive()), ElementsAre("y"));
  run_.pass(1h);
  EXPECT_THAT(bodies(receive()), ElementsAre("1", "2"));
}

TEST_F(QueueTest, a_message_sent_again_with_its_id_within_the_window_is_one_even_after_it_is_gone) {
  EXPECT_FALSE(send("g", "1", "id")->was_duplicate);
  EXPECT_TRUE(send("g", "1", "id")->was_duplicate);
  EXPECT_TRUE(ack(*receive()));
  const auto again = send("g", "1", "id");
  EXPECT_TRUE(again->was_duplicate);
  EXPECT_EQ(again->seq, 1);
  EXPECT_FALSE(receive());
  run_.pass(10min + 1s);  // what is kept is kept in whole seconds
  EXPECT_FALSE(send("g", "1", "id")->was_duplicate);
  EXPECT_THAT(bodies(receive()), ElementsAre("1"));
}

TEST_F(QueueTest, messages_without_an_id_are_all_different) {
  send("g", "1");
  send("g", "1");
  EXPECT_THAT(bodies(receive()), ElementsAre("1", "1"));
}

TEST_F(QueueTest, a_delayed_message_holds_up_what_comes_after_it_in_its_group) {
  send("g", "1");
  send("g", "2", "", 1min);
  send("g", "3");
  const auto first = receive();
  EXPECT_THAT(bodies(first), ElementsAre("1"));
  EXPECT_TRUE(ack(*first));
  EXPECT_FALSE(receive());
  EXPECT_EQ(group("g").owner, "") << "what cannot be given out yet is not kept leased";
  run_.pass(1min);
  const auto rest = receive();
  EXPECT_THAT(bodies(rest), ElementsAre("2", "3"));
  EXPECT_EQ(rest->receives, 1) << "a look in vain is no receive";
}

TEST_F(QueueTest, a_first_message_that_is_delayed_is_not_due_before) {
  send("g", "1", "", 1min);
  EXPECT_FALSE(receive());
  EXPECT_THAT(bodies(receive("c", 10, 2min)), ElementsAre("1"));
}

TEST_F(QueueTest, one_that_is_delayed_for_longer_than_messages_are_kept_is_kept_until_after_it_is_due) {
  constexpr Duration delay = 24h * 30;
  send("g", "1", "", delay);
  const Row* message = table_.find(message_key("q", "g", 1));
  ASSERT_NE(message, nullptr);
  const auto due = run_.now.wall + std::chrono::ceil<std::chrono::milliseconds>(delay);
  EXPECT_GE(WallTime(std::chrono::seconds(message->number(attribute::tombstone_expires_at))), due + 24h * 13);
}

TEST_F(QueueTest, a_consumer_that_needs_longer_extends) {
  send("g", "1");
  const auto batch = receive();
  run_.pass(20s);
  ASSERT_TRUE(settle(batch->receipt, {.kind = Kind::extend, .visibility = 30s}));
  run_.pass(25s);
  EXPECT_FALSE(receive("other"));
  EXPECT_TRUE(ack(*batch));
}

TEST_F(QueueTest, poison_is_told_and_can_be_moved_away_while_the_group_goes_on) {
  send("g", "poison");
  send("g", "fine");
  for (int i = 0; i < 3; ++i) {
    const auto batch = receive("c", 10, 0s, 3);
    ASSERT_TRUE(batch);
    EXPECT_FALSE(batch->is_poison);
    ASSERT_TRUE(settle(batch->receipt, {Kind::nack}));
  }
  const auto poison = receive("c", 10, 0s, 3);
  ASSERT_TRUE(poison);
  EXPECT_TRUE(poison->is_poison);
  EXPECT_THAT(poison->messages, IsEmpty());
  MoveAway moving(poison->receipt, "dead", run_.now.instant + 10s, random_);
  run_.run(moving);
  ASSERT_TRUE(*moving.result());
  EXPECT_EQ((*moving.result())->left, 1);
  EXPECT_THAT(bodies(receive()), ElementsAre("fine"));
  const Row* dead = table_.find(message_key("dead", "g", 1));
  ASSERT_NE(dead, nullptr);
  EXPECT_EQ(message_in(*dead)->body, "poison");
  EXPECT_EQ(group_in(*table_.find(group_key("dead", "g")))->size(), 1);
}

TEST_F(QueueTest, who_came_before_poison_is_not_taken_for_it) {
  for (const char* body : {"first", "poison", "last"}) send("g", body);
  const auto together = receive("c", 10, 0s, 2);
  EXPECT_THAT(bodies(together), ElementsAre("first", "poison", "last"));
  ASSERT_TRUE(settle(together->receipt, {Kind::nack}));
  const auto alone = receive("c", 10, 0s, 2);
  EXPECT_THAT(bodies(alone), ElementsAre("first"));
  ASSERT_TRUE(ack(*alone));
  for (const bool is_alone : {false, true}) {
    const auto batch = receive("c", 10, 0s, 2);
    EXPECT_EQ(bodies(batch).front(), "poison");
    EXPECT_EQ(batch->messages.size(), is_alone ? 1U : 2U);
    ASSERT_TRUE(settle(batch->receipt, {Kind::nack}));
  }
  EXPECT_TRUE(receive("c", 10, 0s, 2)->is_poison);
}

TEST_F(QueueTest, poison_that_is_given_out_only_once_is_given_out_alone) {
  send("g", "1");
  send("g", "2");
  EXPECT_THAT(bodies(receive("c", 10, 0s, 1)), ElementsAre("1"));
}

TEST_F(QueueTest, what_its_holder_has_said_may_be_said_again_until_somebody_else_has_the_group) {
  send("g", "1");
  send("g", "2");
  auto batch = receive();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(settle(batch->receipt, {Kind::nack, 0, 1min})->left, 2);
  EXPECT_EQ(ack(*batch).error().kind, Failure::Kind::refused) << "it was given back undone";
  EXPECT_EQ(settle(batch->receipt, {Kind::park}).error().kind, Failure::Kind::refused);
  EXPECT_EQ(settle(batch->receipt, {.kind = Kind::extend, .visibility = 1h}).error().kind, Failure::Kind::refused);
  run_.pass(2min);
  batch = receive();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(settle(batch->receipt, {Kind::park})->left, 2);
  Redrive going_on("q", "g", false, run_.now.instant + 10s, random_);
  run_.run(going_on);
  EXPECT_EQ(settle(batch->receipt, {Kind::park}).error().kind, Failure::Kind::refused) << "it was let go on since";
  batch = receive();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ack(*batch)->left, 0);
  EXPECT_EQ(ack(batch->receipt, 1)->left, 0) << "done, and more";
  EXPECT_EQ(settle(batch->receipt, {Kind::nack}).error().kind, Failure::Kind::refused) << "it is done with";
  send("g", "3");
  EXPECT_EQ(ack(*batch)->left, 1);
  ASSERT_TRUE(receive("other"));
  EXPECT_EQ(ack(*batch).error().kind, Failure::Kind::refused) << "nobody can tell any more whose it was";
}

TEST_F(QueueTest, one_group_can_be_asked_for) {
  send("g", "1");
  send("h", "2");
  ReceiveOptions options;
  options.queue = "q";
  options.group = "h";
  options.wait_until = run_.now.instant + 1min;
  Receive receiving(options, WorkerId("c"), run_.now.instant + 70s, random_);
  run_.run(receiving);
  EXPECT_THAT(bodies(**receiving.result()), ElementsAre("2"));
  options.group = "none";
  Receive in_vain(options, WorkerId("c"), run_.now.instant + 70s, random_);
  run_.run(in_vain);
  EXPECT_FALSE(**in_vain.result());
}

TEST_F(QueueTest, a_parked_group_waits_for_a_person_with_all_that_is_sent_to_it) {
  send("g", "1");
  send("g", "2");
  const auto batch = receive();
  ASSERT_TRUE(settle(batch->receipt, {.kind = Kind::park, .reason = "the printer is on fire"}));
  send("g", "3");
  run_.pass(1h);
  EXPECT_FALSE(receive());
  EXPECT_EQ(group("g").parked_because, "the printer is on fire");
  Redrive going_on("q", "g", true, run_.now.instant + 10s, random_);
  run_.run(going_on);
  ASSERT_TRUE(*going_on.result());
  EXPECT_THAT(bodies(receive()), ElementsAre("2", "3"));
  Redrive again("q", "g", false, run_.now.instant + 10s, random_);
  run_.run(again);
  EXPECT_EQ(again.result()->error().kind, Failure::Kind::refused);
}

TEST_F(QueueTest, a_hole_is_passed) {
  send("g", "1");
  send("g", "2");
  table_.erase(message_key("q", "g", 1));
  const auto batch = receive();
  EXPECT_THAT(bodies(batch), ElementsAre("2"));
  EXPECT_EQ(batch->receipt.first, 1);
  EXPECT_TRUE(ack(*batch));
  EXPECT_EQ(group("g").state, Group::State::empty);
}

TEST_F(QueueTest, s05_after_a_claim_that_was_applied_nobody_is_told_that_nothing_happened) {
  for (const bool is_rejected : {false, true}) {
    const std::string name = is_rejected ? "r" : "u";
    send(name, "1");
    send(name, "2", "", 1min);  // held back: after the claim there is another write
    int writes = 0;
    run_.mishap = [&](int, bool is_write) {
      if (is_write) ++writes;
      if (is_rejected && writes == 2) run_.damaged.insert(group_key("q", name));
      return !is_rejected && !is_write && writes == 1 ? Mishap::lost_request : Mishap::none;
    };
    ReceiveOptions options;
    options.queue = "q";
    options.group = name;
    Receive receiving(options, WorkerId("c"), run_.now.instant + 10s, random_);
    run_.run(receiving);
    ASSERT_FALSE(*receiving.result());
    EXPECT_EQ(receiving.result()->error().kind, Failure::Kind::unknown);
    EXPECT_EQ(group(name).receives, 1);
    run_.mishap = [](int, bool) { return Mishap::none; };
  }
}

TEST_F(QueueTest, an_id_is_for_one_message) {
  ASSERT_TRUE(send("g", "one", "id"));
  EXPECT_TRUE(send("g", "one", "id")->was_duplicate);
  EXPECT_EQ(send("g", "two", "id").error().kind, Failure::Kind::mismatch) << "or it would be lost in silence";
  EXPECT_EQ(send("h", "one", "id").error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(send("go", "ne", "id").error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(group("g").size(), 1);
  run_.pass(10min + 1s);
  EXPECT_FALSE(send("g", "two", "id")->was_duplicate) << "past the window it is another";
}

TEST_F(QueueTest, an_id_is_known_for_the_longer_of_two_windows_whoever_asked_for_it) {
  for (const bool first_is_longer : {true, false}) {
    SCOPED_TRACE(first_is_longer);
    const std::string id = first_is_longer ? "a" : "b";
    const auto send_for = [&](Duration window) {
      SendOptions options{"q", "g", "x", id};
      options.dedup_window = window;
      Send sending(options, run_.now.instant + 10s, random_);
      run_.run(sending);
      return **sending.result();
    };
    EXPECT_FALSE(send_for(first_is_longer ? 24h : 10min).was_duplicate);
    run_.pass(1h);
    EXPECT_TRUE(send_for(first_is_longer ? 10min : 24h).was_duplicate);
  }
}

TEST_F(QueueTest, an_id_that_was_used_before_ids_had_fingerprints_counts_as_the_same) {
  ASSERT_TRUE(send("g", "one", "id"));
  table_.row(dedup_key("q", "id")).attributes.erase(std::string(coord::fingerprint));
  EXPECT_TRUE(send("g", "two", "id")->was_duplicate);
}

TEST_F(QueueTest, what_is_put_away_as_poison_was_not_given_out_once_more) {
  send("g", "poison");
  ASSERT_TRUE(settle(receive()->receipt, {Kind::nack}));
  const auto poison = receive("c", 10, 0s, 1);
  ASSERT_TRUE(poison && poison->is_poison);
  EXPECT_EQ(poison->receives, 1);
  EXPECT_EQ(group("g").receives, 1);
}

TEST_F(QueueTest, a_damaged_group_is_left_alone) {
  send("g", "1");
  table_.row(group_key("q", "g")).attributes.insert_or_assign(std::string(coord::head), Value("first"));
  const Row before = *table_.find(group_key("q", "g"));
  Receive receiving({.queue = "q"}, WorkerId("c"), run_.now.instant + 10s, random_);
  run_.run(receiving);
  EXPECT_EQ(receiving.result()->error().kind, Failure::Kind::rejected);
  EXPECT_EQ(send("g", "2").error().kind, Failure::Kind::rejected);
  EXPECT_EQ(*table_.find(group_key("q", "g")), before);
}

TEST_F(QueueTest, a_receipt_survives_being_written_down) {
  const Receipt receipt{"q.1", "a/group\n\x7f\xff%2", WorkerId("c#1"), {7}, 3, 5};
  const std::string text = receipt.to_string();
  for (const char c : text) EXPECT_TRUE(c > ' ' && c < 0x7F) << text;
  const auto read = Receipt::from_string(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->queue, receipt.queue);
  EXPECT_EQ(read->group, receipt.group);
  EXPECT_EQ(read->owner, receipt.owner);
  EXPECT_EQ(read->epoch, receipt.epoch);
  EXPECT_EQ(read->first, 3);
  EXPECT_EQ(read->last, 5);
  for (const char* nonsense :
       {"", "1", "1.2.3", "1.1.1/a/b", "1.1.1/a/b/", "1.1.1//b/c", "0.1.1/a/b/c", "1.1.1/a/b/%4", "1.1.1/a%zz/b/c"}) {
    EXPECT_FALSE(Receipt::from_string(nonsense)) << nonsense;
  }
}

TEST_F(QueueTest, in_any_mixture_of_mishaps_every_message_is_given_out_in_order_until_it_is_acknowledged) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Random chance(seed);
    table_ = {};
    test::ProcedureRun run(table_);
    run.mishap = [&](int, bool) {
      return chance.below(5) == 0 ? every_mishap[chance.below(std::size(every_mishap))] : Mishap::none;
    };
    // Two senders and three consumers; what a consumer is given counts as done when its acknowledgement was applied.
    std::map<std::string, std::int64_t> sent, acknowledged, next_to_see;
    std::vector<std::unique_ptr<Send>> sends(2);
    std::vector<std::string> send_groups(2);
    struct Consumer {
      std::unique_ptr<Receive> receiving;
      std::unique_ptr<Settle> settling;
      Receipt receipt;
    };
    std::vector<Consumer> consumers(3);
    for (int turn = 0; turn < 4000; ++turn) {
      if (chance.below(4) == 0) run.arrive_late();
      if (chance.below(50) == 0) run.pass(40s);  // a consumer may have died meanwhile
      if (const std::size_t at = chance.below(5); at < 2) {
        if (!sends[at] && turn < 2000) {
          send_groups[at] = chance.below(2) == 0 ? "a" : "b";
          sends[at] = std::make_unique<Send>(SendOptions{"q", send_groups[at], "m"}, run.now.instant + 1h, random_);
        } else if (sends[at] && !run.step(*sends[at])) {
          ASSERT_TRUE(*sends[at]->result());
          ++sent[send_groups[at]];
          sends[at].reset();
        }
        continue;
      }
      Consumer& consumer = consumers[chance.below(3)];
      if (!consumer.receiving && !consumer.settling) {
        ReceiveOptions options;
        options.queue = "q";
        options.max = 1 + chance.below(3);
        const auto name = "c" + std::to_string(&consumer - consumers.data());
        consumer.receiving = std::make_unique<Receive>(options, WorkerId(name), run.now.instant + 1h, random_);
      } else if (consumer.receiving && !run.step(*consumer.receiving)) {
        const auto& result = *consumer.receiving->result();
        ASSERT_TRUE(result);
        if (*result && run.now.instant < (*result)->until) {  // else it came too late to be believed (S7)
          const Batch& batch = **result;
          std::int64_t expected = batch.receipt.first;
          EXPECT_GE(expected, acknowledged[batch.receipt.group] + 1) << "nothing that was acknowledged comes again";
          for (const Message& each : batch.messages) EXPECT_EQ(each.seq, expected++);
          consumer.receipt = batch.receipt;
          const auto count = static_cast<std::int64_t>(batch.messages.size());
          consumer.settling =
              std::make_unique<Settle>(batch.receipt, Settlement{Kind::ack, count}, run.now.instant + 1h, random_);
        }
        consumer.receiving.reset();
      } else if (consumer.settling && !run.step(*consumer.settling)) {
        if (*consumer.settling->result()) {
          auto& done = acknowledged[consumer.receipt.group];
          done = std::max(done, consumer.receipt.last);
        }
        consumer.settling.reset();
      }
    }
    for (const auto& [name, count] : sent) {
      const Group at = group_in(*table_.find(group_key("q", name))).value();
      EXPECT_GE(at.tail, count);
      EXPECT_LE(at.tail, count + 2) << "each message once; two may be on their way";
      EXPECT_GE(at.head - 1, acknowledged[name]);
    }
  }
}

}  // namespace
}  // namespace holdfast
