// Rows that are damaged: what is in them is neither missing nor zero.
#include <gmock/gmock.h>

#include "core/coord/counter.hpp"
#include "core/coord/decision.hpp"
#include "core/coord/names.hpp"
#include "core/coord/once.hpp"
#include "core/coord/queue.hpp"
#include "core/coord/queue_look.hpp"
#include "core/coord/replay.hpp"
#include "core/coord/stock.hpp"
#include "core/coord/task_look.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DamageTest : public testing::Test {
 protected:
  template <class P, class... Arguments>
  auto carry_out(Arguments&&... arguments) {
    P procedure(std::forward<Arguments>(arguments)..., run_.now.instant + 10s, random_);
    run_.run(procedure);
    return *procedure.result();
  }
  template <class T>
  static void expect_damage(const Ended<T>& result, std::string_view key) {
    ASSERT_FALSE(result) << key;
    EXPECT_EQ(result.error().kind, Failure::Kind::rejected);
    EXPECT_EQ(result.error().error.code, Code::corrupt);
    EXPECT_THAT(result.error().error.detail, HasSubstr(std::string(key)));
  }
  void send(const std::string& group, const std::string& body) {
    ASSERT_TRUE(carry_out<Send>(SendOptions{"q", group, body, ""}));
  }
  Ended<std::optional<Batch>> receive(std::string group = "") {
    ReceiveOptions options;
    options.queue = "q";
    options.group = std::move(group);
    return carry_out<Receive>(std::move(options), WorkerId("c"));
  }
  Ended<Settled> settle(const Batch& batch, Settlement settlement) {
    return carry_out<Settle>(batch.receipt, std::move(settlement));
  }
  Ended<Settled> ack(const Batch& batch) {
    return settle(batch, {Settlement::Kind::ack, batch.receipt.last - batch.receipt.first + 1});
  }
  Group group(std::string_view name) { return group_in(*table_.find(group_key("q", name))).value(); }
  static std::vector<std::string> bodies(const Batch& batch) {
    std::vector<std::string> bodies;
    for (const Message& each : batch.messages) bodies.push_back(each.body);
    return bodies;
  }
  void put(std::string key, std::string_view name, Value value) {
    table_.add(std::move(key)).attributes.insert_or_assign(std::string(name), std::move(value));
  }

  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{7};
};

/// In the two ways in which a message can be damaged: the store cannot read its row, or its body is no text.
class DamagedMessageTest : public DamageTest, public testing::WithParamInterface<bool> {
 protected:
  std::string damage(std::string_view group, std::int64_t seq) {
    std::string key = message_key("q", group, seq);
    if (GetParam()) {
      run_.damaged.insert(key);
    } else {
      table_.row(key).attributes.insert_or_assign(std::string(coord::body), Value(7));
    }
    return key;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, DamagedMessageTest, testing::Bool(),
                         [](const auto& way) { return way.param ? "unreadable" : "another_type"; });

TEST_P(DamagedMessageTest, f30_it_is_not_passed_over_and_its_group_is_set_aside_with_the_reason) {
  for (const char* each : {"1", "2", "3"}) send("g", each);
  const std::string key = damage("g", 2);
  const auto before = receive();
  ASSERT_TRUE(before && *before);
  EXPECT_THAT(bodies(**before), ElementsAre("1"));
  EXPECT_EQ((*before)->receipt.last, 1) << "what comes after it is not acknowledged";
  EXPECT_EQ(ack(**before)->left, 2);
  expect_damage(receive(), key);
  EXPECT_EQ(group("g").state, Group::State::parked);
  EXPECT_EQ(group("g").receives, 0);
  EXPECT_THAT(group("g").parked_because, HasSubstr(key));
  EXPECT_EQ(group("g").head, 2);
  EXPECT_TRUE(receive() && !*receive()) << "it was told";
  ASSERT_TRUE(carry_out<Redrive>("q", "g", true));
  EXPECT_THAT(bodies(**receive()), ElementsAre("3"));
}

TEST_P(DamagedMessageTest, f30_the_other_groups_are_given_out) {
  send("a", "1");
  send("b", "2");
  send("c", "3");
  damage("a", 1);
  damage("c", 1);
  for (int i = 0; i < 3; ++i) {
    const auto batch = receive();
    if (!batch) continue;
    ASSERT_TRUE(*batch);
    EXPECT_THAT(bodies(**batch), ElementsAre("2"));
    return;
  }
  FAIL() << "nothing was given out";
}

TEST_P(DamagedMessageTest, behind_one_that_is_past_its_retention_it_is_found_too) {
  for (const char* each : {"1", "2", "3"}) send("g", each);
  table_.erase(message_key("q", "g", 1));
  const std::string key = damage("g", 2);
  const auto hole = receive();
  ASSERT_TRUE(hole && *hole);
  EXPECT_THAT((*hole)->messages, IsEmpty());
  EXPECT_EQ((*hole)->receipt.last, 1);
  EXPECT_EQ(ack(**hole)->left, 2);
  expect_damage(receive(), key);
}

TEST_P(DamagedMessageTest, as_poison_it_is_not_dropped) {
  send("g", "1");
  const auto batch = receive();
  const std::string key = damage("g", 1);
  expect_damage(carry_out<MoveAway>((*batch)->receipt, "dead"), key);
  EXPECT_EQ(group("g").head, 1);
  EXPECT_EQ(table_.find(group_key("dead", "g")), nullptr);
}

TEST_P(DamagedMessageTest, who_looks_is_told) {
  send("g", "1");
  const std::string key = damage("g", 1);
  expect_damage(carry_out<PeekGroup>("q", "g", std::size_t{10}), key);
}

TEST_P(DamagedMessageTest, whichever_request_is_lost_its_group_is_set_aside) {
  for (int lost = 0; lost < 6; ++lost) {
    for (const auto mishap : {test::Mishap::lost_request, test::Mishap::lost_reply}) {
      const std::string name = "g" + std::to_string(lost) + (mishap == test::Mishap::lost_reply ? "r" : "q");
      send(name, "1");
      const std::string key = damage(name, 1);
      run_.mishap = [&, at = run_.requests + lost](int request, bool) {
        return request == at ? mishap : test::Mishap::none;
      };
      expect_damage(receive(name), key);
      run_.mishap = [](int, bool) { return test::Mishap::none; };
      EXPECT_EQ(group(name).state, Group::State::parked);
      EXPECT_EQ(group(name).receives, 0);
    }
  }
}

TEST_F(DamageTest, a_counter_that_cannot_be_read_is_not_zero) {
  put("COUNTER#k", coord::value, Value(100));
  run_.damaged.insert("COUNTER#k");
  expect_damage(carry_out<Add>(AddOptions{"k", -5, "op", 0}), "COUNTER#k");
}

TEST_F(DamageTest, an_intent_about_a_counter_that_cannot_be_read_waits) {
  put("COUNTER#k", coord::value, Value(100));
  run_.damaged.insert("COUNTER#k");
  Intent intent;
  intent.ticket = "t1";
  intent.wish = AddWish{"k", -5, 0};
  Replay replay(intent, run_.now, run_.now.instant + 10s, random_);
  run_.run(replay);
  EXPECT_EQ(replay.verdict({}).kind, Verdict::Kind::stuck);
}

TEST_F(DamageTest, what_an_operation_has_added_is_known_or_the_row_is_damaged) {
  ASSERT_TRUE(carry_out<Add>(AddOptions{"k", 5, "op"}));
  const std::string key = operation_key("COUNTER#k", "op");
  table_.row(key).attributes.insert_or_assign(std::string(coord::delta), Value("five"));
  expect_damage(carry_out<Add>(AddOptions{"k", 5, "op"}), key);
}

TEST_F(DamageTest, a_sale_of_which_nobody_knows_what_was_sold_is_no_other_sale) {
  put(Reserve::stock_key("hat"), coord::available, Value(10));
  ASSERT_TRUE(carry_out<Reserve>(ReserveOptions{"r", {{"hat", 2}}}));
  ASSERT_TRUE(carry_out<Draw>(DrawOptions{"sale", "r", {{"hat", 1}}}));
  for (const char* id : {"sale", "r"}) {
    table_.row(Reserve::row_key(id)).attributes.insert_or_assign(std::string(coord::items), Value("hats"));
  }
  expect_damage(carry_out<Draw>(DrawOptions{"sale", "r", {{"hat", 1}}}), Reserve::row_key("sale"));
  expect_damage(carry_out<Reserve>(ReserveOptions{"r", {{"hat", 2}}}), Reserve::row_key("r"));
}

TEST_F(DamageTest, stock_that_cannot_be_read_or_is_no_number_is_not_zero) {
  put(Reserve::stock_key("hat"), coord::available, Value(10));
  run_.damaged.insert(Reserve::stock_key("hat"));
  const ReserveOptions options{"r", {{"hat", 1}}};
  expect_damage(carry_out<Reserve>(options), Reserve::stock_key("hat"));
  run_.damaged.clear();
  put(Reserve::stock_key("hat"), coord::available, Value("ten"));
  expect_damage(carry_out<Reserve>(options), Reserve::stock_key("hat"));
}

TEST_F(DamageTest, whatever_times_a_reservation_says_none_overflows) {
  for (const std::int64_t time : {INT64_MIN, INT64_MAX}) {
    const std::string id = time < 0 ? "past" : "future";
    put(Reserve::stock_key("hat"), coord::available, Value(10));
    const auto reserved = carry_out<Reserve>(ReserveOptions{id, {{"hat", 1}}});
    ASSERT_TRUE(reserved);
    Row& row = table_.row(Reserve::row_key(id));
    row.attributes.insert_or_assign(std::string(coord::reserved_until), Value(time));
    row.attributes.insert_or_assign("remember_s", Value(time));
    const auto expired = carry_out<EndReservation>(*reserved, Reservation::State::expired, 500ms);
    EXPECT_EQ(expired.has_value(), time < 0);
    EXPECT_TRUE(expired || expired.error().kind == Failure::Kind::refused);
    EXPECT_EQ(carry_out<EndReservation>(*reserved, Reservation::State::cancelled, 500ms).has_value(), time > 0);
    EXPECT_GT(row.number(attribute::tombstone_expires_at), 0);
  }
}

TEST_F(DamageTest, a_reservation_that_cannot_be_read_has_not_ended) {
  put(Reserve::stock_key("hat"), coord::available, Value(10));
  const auto reserved = carry_out<Reserve>(ReserveOptions{"r", {{"hat", 1}}});
  ASSERT_TRUE(reserved);
  run_.damaged.insert(Reserve::row_key("r"));
  expect_damage(carry_out<EndReservation>(*reserved, Reservation::State::cancelled, 500ms), Reserve::row_key("r"));
}

TEST_F(DamageTest, an_operation_that_was_given_up_was_not_sent_before_whatever_it_is_said_to_have_added) {
  for (const auto to : {AddOptions::To::counter, AddOptions::To::stock}) {
    const std::string key = operation_key(Add::row_key(to, "c"), "c1");
    carry_out<Preclude>(key);
    for (const std::int64_t delta : {0, 1}) {
      const auto added = carry_out<Add>(AddOptions{.key = "c", .delta = delta, .op_id = "c1", .to = to});
      ASSERT_FALSE(added);
      EXPECT_EQ(added.error().kind, Failure::Kind::mismatch);
      EXPECT_THAT(added.error().error.detail, HasSubstr("c1 was given up, and never happened"));
    }
  }
}

TEST_F(DamageTest, a_reservation_or_a_sale_that_was_given_up_was_not_made_of_other_goods) {
  put(Reserve::stock_key("hat"), coord::available, Value(10));
  ASSERT_TRUE(carry_out<Reserve>(ReserveOptions{"quota", {{"hat", 5}}}));
  carry_out<Preclude>(Reserve::row_key("r"));
  for (const auto& made : {carry_out<Reserve>(ReserveOptions{"r", {{"hat", 1}}}),
                           carry_out<Draw>(DrawOptions{"r", "quota", {{"hat", 1}}})}) {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, Failure::Kind::mismatch);
    EXPECT_THAT(made.error().error.detail, HasSubstr("r was given up, and never happened"));
  }
}

TEST_F(DamageTest, of_goods_there_are_never_fewer_than_none) {
  AddOptions options{.key = "shirt", .delta = 10, .op_id = "in", .to = AddOptions::To::stock};
  ASSERT_TRUE(carry_out<Add>(options));
  for (const std::optional<std::int64_t> floor : {std::optional<std::int64_t>(), std::optional<std::int64_t>(-100)}) {
    options.delta = -11;
    options.op_id = "out";
    options.floor = floor;
    const auto added = carry_out<Add>(options);
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().kind, Failure::Kind::refused);
    EXPECT_EQ(carry_out<ReadNumber>(AddOptions::To::stock, "shirt"), 10);
  }
  options.delta = -1;
  options.floor = 10;
  EXPECT_FALSE(carry_out<Add>(options)) << "another floor holds as well";
}

TEST_F(DamageTest,
       goods_of_a_damaged_reservation_are_not_returned_and_who_returns_others_is_told_when_none_are_left) {
  put(Reserve::stock_key("hat"), coord::available, Value(10));
  for (const char* id : {"r", "s"}) ASSERT_TRUE(carry_out<Reserve>(ReserveOptions{id, {{"hat", 1}}, 1s}));
  table_.row("RESERVATION#r").attributes.insert_or_assign(std::string(coord::reserved_until), Value("soon"));
  run_.pass(1min);
  EXPECT_EQ(carry_out<ReturnExpired>(500ms, std::size_t{25}), 1U) << "the other one";
  expect_damage(carry_out<ReturnExpired>(500ms, std::size_t{25}), "RESERVATION#r");
  EXPECT_EQ(carry_out<ReadNumber>(AddOptions::To::stock, "hat"), 9);
}

// ---- A group's own row ----

/// What somebody may have put into it.
class DamagedGroupTest : public DamageTest, public testing::WithParamInterface<std::pair<std::string_view, Value>> {
 protected:
  std::string damage(std::string_view group) {
    std::string key = group_key("q", group);
    table_.row(key).attributes.insert_or_assign(std::string(GetParam().first), GetParam().second);
    return key;
  }
  Ended<std::optional<Batch>> wait_for(Duration wait) {
    ReceiveOptions options;
    options.queue = "q";
    options.wait_until = run_.now.instant + wait;
    Receive receive(std::move(options), WorkerId("c"), run_.now.instant + wait + 10s, random_);
    run_.run(receive);
    return *receive.result();
  }
};
INSTANTIATE_TEST_SUITE_P(Attributes, DamagedGroupTest,
                         testing::Values(std::pair(attribute::expires_at, Value("soon")),
                                         std::pair(coord::head, Value("one")), std::pair(coord::head, Value(0)),
                                         std::pair(coord::tail, Value(1.5)), std::pair(coord::receives, Value("two")),
                                         std::pair(coord::leased_last, Value("one")),
                                         std::pair(attribute::epoch, Value("first")),
                                         std::pair(attribute::owner, Value(7))));

TEST_P(DamagedGroupTest, nothing_else_being_due_it_is_told) {
  send("g", "1");
  const std::string key = damage("g");
  expect_damage(receive(), key);
  expect_damage(receive("g"), key);
}

TEST_P(DamagedGroupTest, it_is_told_when_the_wait_is_over_and_who_waits_for_ever_is_told_too) {
  send("g", "1");
  const std::string key = damage("g");
  Instant begun = run_.now.instant;
  expect_damage(wait_for(5s), key);
  EXPECT_GE(run_.now.instant - begun, 5s);
  begun = run_.now.instant;
  expect_damage(wait_for(24h), key);
  EXPECT_LE(run_.now.instant - begun, 15s);
}

TEST_P(DamagedGroupTest, the_others_are_given_out_first) {
  send("a", "1");
  send("g", "2");
  send("z", "3");
  damage("a");
  damage("z");
  const auto batch = receive();
  ASSERT_TRUE(batch && *batch);
  EXPECT_THAT(bodies(**batch), ElementsAre("2"));
}

TEST_P(DamagedGroupTest, one_that_is_mended_while_somebody_waits_is_given_out) {
  send("g", "1");
  const Row whole = *table_.find(group_key("q", "g"));
  damage("g");
  const int before = run_.requests;
  run_.mishap = [&](int request, bool) {
    if (request == before + 4) table_.row(whole.key) = whole;
    return test::Mishap::none;
  };
  const auto batch = wait_for(1h);
  ASSERT_TRUE(batch && *batch);
  EXPECT_THAT(bodies(**batch), ElementsAre("1"));
}

TEST_P(DamagedGroupTest, a_list_tells_which_rows_it_leaves_out) {
  send("a", "1");
  send("g", "2");
  const std::string key = damage("g");
  const auto list = carry_out<ListGroups>("q", std::size_t{10});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->groups.size(), 1U);
  EXPECT_THAT(list->damaged, ElementsAre(key));
}

TEST_F(DamageTest, a_group_that_the_store_cannot_read_is_told_and_listed_in_its_words) {
  send("a", "1");
  send("g", "2");
  run_.damaged.insert(group_key("q", "g"));
  const auto batch = receive();
  ASSERT_TRUE(batch && *batch) << "the others come first";
  EXPECT_THAT(bodies(**batch), ElementsAre("1"));
  expect_damage(receive(), group_key("q", "g"));
  expect_damage(receive("g"), group_key("q", "g"));
  EXPECT_THAT(carry_out<ListGroups>("q", std::size_t{10})->damaged, ElementsAre(HasSubstr(group_key("q", "g"))));
}

// ---- Attributes of another type, in every row that a decision depends on ----

struct Wrong {
  std::string key;
  std::string_view attribute;
  Value value;
};

class WrongTypeTest : public DamageTest {
 protected:
  /// A row of each kind, and what is asked of it.
  void expect_damage_everywhere(const Wrong& wrong) {
    SCOPED_TRACE(wrong.key + " " + std::string(wrong.attribute));
    const Row whole = *table_.find(wrong.key);
    table_.row(wrong.key).attributes.insert_or_assign(std::string(wrong.attribute), wrong.value);
    const auto before = table_.rows();
    ask_all(wrong.key);
    EXPECT_EQ(table_.rows(), before) << "nothing is done with it";
    table_.row(wrong.key) = whole;
  }
  void ask_all(const std::string& key) {
    const auto is = [&](std::string_view prefix) { return key.starts_with(prefix); };
    if (is(coord::once_prefix)) {
      OnceOptions options;
      options.key = "k";
      options.fingerprint = "f2";
      options.deadline = run_.now.instant + 10s;
      LookOnce look(options, random_);
      run_.run(look);
      expect_damage(*look.result(), key);
      expect_damage(carry_out<ReadTask>(TaskView::Kind::once, "k"), key);
      EXPECT_THAT(carry_out<ListTasks>(std::size_t{10}, "")->damaged, ElementsAre(key));
    } else if (is(coord::decision_prefix)) {
      expect_damage(carry_out<Decide>("d", Value(2), "you"), key);
      expect_damage(carry_out<ReadDecision>("d"), key);
    } else if (is(coord::counter_prefix)) {
      expect_damage(carry_out<Add>(AddOptions{"c", 1, "another"}), key);
      expect_damage(carry_out<ReadNumber>(AddOptions::To::counter, "c"), key);
    } else if (is(coord::operation_prefix)) {
      expect_damage(carry_out<Add>(AddOptions{"c", 1, "op"}), key);
      expect_damage(carry_out<Preclude>(key), key);
    } else if (is(coord::reservation_prefix)) {
      expect_damage(carry_out<Reserve>(ReserveOptions{"r", {{"hat", 2}}}), key);
      expect_damage(carry_out<ReadReservation>("r"), key);
      expect_damage(carry_out<Draw>(DrawOptions{"sale", "r", {{"hat", 1}}}), key);
      const Reservation reserved{.id = "r", .basket = {{"hat", 2}}};
      for (const auto into : {Reservation::State::confirmed, Reservation::State::cancelled}) {
        expect_damage(carry_out<EndReservation>(reserved, into, 500ms), key);
      }
    } else if (is(coord::message_prefix)) {
      expect_damage(carry_out<PeekGroup>("q", "g", std::size_t{10}), key);
    } else if (is(coord::dedup_prefix)) {
      expect_damage(carry_out<Send>(SendOptions{"q", "g", "1", "id"}), key);
    } else {
      FAIL() << "who asks for " << key << "?";
    }
  }
};

TEST_F(WrongTypeTest, what_is_there_with_another_type_is_never_taken_for_missing) {
  Row& once = table_.add("ONCE#k");
  for (Change& each : LookOnce::result_changes({}, 1h, run_.now.wall)) {
    once.attributes.insert_or_assign(each.attribute, each.value);
  }
  once.attributes.insert_or_assign("desired_state", Value("TASK"));
  once.attributes.insert_or_assign("fingerprint", Value("f"));
  ASSERT_TRUE(carry_out<Decide>("d", Value(1), "me"));
  ASSERT_TRUE(carry_out<Add>(AddOptions{"c", 1, "op"}));
  put(Reserve::stock_key("hat"), coord::available, Value(10));
  ASSERT_TRUE(carry_out<Reserve>(ReserveOptions{"r", {{"hat", 2}}}));
  ASSERT_TRUE(carry_out<Send>(SendOptions{"q", "g", "1", "id"}));
  const std::string op = operation_key("COUNTER#c", "op"), message = message_key("q", "g", 1);
  const Value text("x"), number(7);
  for (const Wrong& each : std::vector<Wrong>{{"ONCE#k", coord::fingerprint, number},
                                              {"ONCE#k", coord::result, number},
                                              {"ONCE#k", coord::succeeded, text},
                                              {"ONCE#k", coord::completed_at, text},
                                              {"ONCE#k", attribute::tombstone_expires_at, text},
                                              {"ONCE#k", attribute::epoch, text},
                                              {"DECISION#d", coord::proposer, number},
                                              {"DECISION#d", coord::decided_at, text},
                                              {"COUNTER#c", coord::value, text},
                                              {"COUNTER#c", coord::value, Value(nullptr)},
                                              {op, coord::delta, text},
                                              {op, coord::outcome, number},
                                              {op, attribute::tombstone_expires_at, text},
                                              {"RESERVATION#r", coord::outcome, number},
                                              {"RESERVATION#r", coord::items, text},
                                              {"RESERVATION#r", coord::reserved_until, text},
                                              {"RESERVATION#r", coord::remember_s, text},
                                              {"RESERVATION#r", coord::draws, text},
                                              {"RESERVATION#r", coord::drawn_from, number},
                                              {"RESERVATION#r", coord::quota_of, number},
                                              {message, coord::seq, text},
                                              {message, coord::body, number},
                                              {message, coord::dedup_id, number},
                                              {message, coord::sent_at, text},
                                              {message, coord::deliver_at, text},
                                              {"DEDUP#q#id", coord::seq, text},
                                              {"DEDUP#q#id", coord::sent_at, text},
                                              {"DEDUP#q#id", coord::fingerprint, number},
                                              {"DEDUP#q#id", coord::outcome, number},
                                              {"DEDUP#q#id", attribute::tombstone_expires_at, text}}) {
    expect_damage_everywhere(each);
  }
}

}  // namespace
}  // namespace holdfast
