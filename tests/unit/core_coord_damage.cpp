// Rows that are damaged: what is in them is neither missing nor zero.
#include <gmock/gmock.h>

#include "core/coord/counter.hpp"
#include "core/coord/names.hpp"
#include "core/coord/queue.hpp"
#include "core/coord/queue_look.hpp"
#include "core/coord/replay.hpp"
#include "core/coord/stock.hpp"
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
  expect_damage(carry_out<PeekGroup>("q", "g", 10), key);
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

}  // namespace
}  // namespace holdfast
