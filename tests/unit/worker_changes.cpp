// One worker reads the table's changes for all and tells the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/poke_post.hpp"
#include "support/worker_town.hpp"
#include "worker/change_watch.hpp"
#include "worker/feed_lease.hpp"
#include "worker/poke.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;

const std::string feed_row(worker::FeedLease::row);

/// Workers that look only every few minutes, on a store whose changes are for one reader.
struct Reactive : testing::Test {
  Reactive() { town.terms.reconcile_every = 5min; }

  Town::Citizen& join(const std::string& name, std::size_t capacity = 1000) {
    const std::string token = name + "-0123456789abcdef";
    Town::Citizen& citizen = town.join(name, capacity, [&](worker::WorkerOptions& options) {
      // Its loop is the one that was added last.
      boxes.push_back(post.open(name + ":1", *town.newest_loop));
      options.pokes = boxes.back().get();
      options.poke_token = token;
    });
    all.push_back(&citizen);
    return citizen;
  }
  [[nodiscard]] Town::Citizen* reader() const {
    Town::Citizen* found = nullptr;
    for (Town::Citizen* one : all) {
      if (one == asleep || !one->worker || !one->worker->reads_changes()) continue;
      EXPECT_EQ(found, nullptr) << "two readers";
      found = one;
    }
    return found;
  }
  [[nodiscard]] bool has_reader(Duration limit = 20s) {
    return town.nodes.advance_until([&] { return reader() != nullptr; }, limit);
  }
  /// Everybody's row is there and everybody has looked.
  void settle() {
    ASSERT_TRUE(has_reader());
    town.nodes.advance(2s);
  }
  void tell(std::size_t rows = 1) {
    Town::Citizen* const who = reader();
    ASSERT_NE(who, nullptr);
    ASSERT_TRUE(who->store.listener);
    who->loop.post([who, rows] { who->store.listener({rows}); });
  }
  [[nodiscard]] int looks(const Town::Citizen& citizen) const {
    const auto found = citizen.store.asked.find("query_due");
    return found == citizen.store.asked.end() ? 0 : found->second;
  }
  [[nodiscard]] bool taken(const std::string& id) { return !town.row(id).text(attribute::owner).empty(); }

  PokePost post;
  std::vector<std::unique_ptr<worker::PokeNet>> boxes;
  Town town;
  std::vector<Town::Citizen*> all;
  Town::Citizen* asleep = nullptr;
};

TEST_F(Reactive, f45_one_of_several_reads_and_another_one_does_when_it_is_gone) {
  for (const char* name : {"a", "b", "c"}) join(name);
  ASSERT_TRUE(has_reader());
  Town::Citizen* const first = reader();
  EXPECT_TRUE(town.row_at(feed_row).text(attribute::owner).starts_with(first->name + "#"));
  EXPECT_EQ(town.row_at(feed_row).text(attribute::desired_state), state::feed);
  EXPECT_EQ(town.row_at(feed_row).number(attribute::epoch), 1);
  for (Town::Citizen* one : all) EXPECT_EQ(one->store.listener != nullptr, one == first);
  town.nodes.advance(1min);
  EXPECT_EQ(reader(), first) << "it renews";
  first->crash();
  ASSERT_TRUE(has_reader(town.terms.lease + town.terms.skew + 1s));
  EXPECT_NE(reader(), first);
  EXPECT_EQ(town.row_at(feed_row).number(attribute::epoch), 2);
}

TEST_F(Reactive, a_row_is_taken_within_a_second_although_nobody_would_have_looked_for_minutes) {
  for (const char* name : {"a", "b", "c"}) join(name);
  settle();
  for (int i = 0; i < 5; ++i) {
    const std::string id = "c" + std::to_string(i);
    town.add(id);
    tell();
    EXPECT_TRUE(town.nodes.advance_until([&] { return taken(id); }, 1s)) << id;
    town.nodes.advance(1s);
  }
  EXPECT_THAT(town.world.wrong(), IsEmpty());
}

TEST_F(Reactive, one_who_is_not_the_reader_takes_it_where_the_reader_has_no_room) {
  Town::Citizen& full = join("full", 1);
  town.add("first");
  ASSERT_TRUE(has_reader());
  ASSERT_TRUE(town.nodes.advance_until([&] { return taken("first"); }, 20min));
  Town::Citizen& other = join("other");
  town.nodes.advance(2s);
  ASSERT_EQ(reader(), &full);
  town.add("second");
  tell();
  EXPECT_TRUE(town.nodes.advance_until([&] { return taken("second"); }, 2s));
  EXPECT_TRUE(town.row("second").text(attribute::owner).starts_with("other#"));
  EXPECT_EQ(other.worker->report().pokes_heard, 1);
  EXPECT_EQ(full.worker->report().pokes_sent, 1);
}

TEST_F(Reactive, f46_one_row_is_told_to_a_few_and_many_rows_to_all_that_have_room) {
  for (int i = 0; i < 12; ++i) join("w" + std::to_string(i));
  join("small", 1);
  town.add("x");
  ASSERT_TRUE(town.nodes.advance_until([&] { return taken("x"); }, 20min));
  settle();
  post.sent.clear();
  tell(1);
  town.nodes.advance(1s);
  EXPECT_EQ(post.sent.size(), 1 + worker::ChangeWatch::spare_pokes);
  EXPECT_EQ(std::set<std::string>(post.sent.begin(), post.sent.end()).size(), post.sent.size()) << "each once";
  post.sent.clear();
  tell(Changed::any);
  town.nodes.advance(1s);
  EXPECT_GE(post.sent.size(), 11U);
  EXPECT_LE(post.sent.size(), 12U);
}

TEST_F(Reactive, f46_changes_that_come_thick_are_told_at_most_every_pause) {
  join("a");
  join("b");
  settle();
  post.sent.clear();
  for (int i = 0; i < 200; ++i) {
    tell(1);
    town.nodes.advance(10ms);
  }
  EXPECT_GE(post.sent.size(), 7U);
  EXPECT_LE(post.sent.size(), 9U);
}

TEST_F(Reactive, f46_however_many_pokes_come_a_worker_looks_no_more_often_than_is_good_for_the_store) {
  join("a");
  Town::Citizen& other = join("b");
  settle();
  Town::Citizen& poked = reader() == &other ? *all.front() : other;
  const int before = looks(poked);
  const std::string text = worker::poke_text(worker::Poke::rows, poked.name + "-0123456789abcdef");
  for (int i = 0; i < 5000; ++i) {
    post.send(poked.name + ":1", text);
    town.nodes.advance(1ms);
  }
  EXPECT_LE(looks(poked) - before, 5s / 250ms + 1);
  EXPECT_GE(looks(poked) - before, 10);
}

TEST_F(Reactive, a_poke_without_the_workers_token_changes_nothing) {
  Town::Citizen& one = join("a");
  settle();
  const int before = looks(one);
  for (const std::string text : {"", "holdfast rows ", "holdfast rows a-0123456789abcdeX",
                                 "holdfast look a-0123456789abcdef", "holdfast rows a-0123456789abcdef "}) {
    post.send("a:1", text);
    town.nodes.advance(1s);
  }
  EXPECT_EQ(looks(one), before);
  EXPECT_EQ(one.worker->report().pokes_refused, 5);
  EXPECT_EQ(one.worker->report().pokes_heard, 0);
}

TEST_F(Reactive, a_reader_that_is_drained_hands_over_at_once_and_what_it_gave_back_is_taken) {
  town.add_many(4);
  Town::Citizen& first = join("a");
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.owned_by("a", 4) == 4; }, 20min));
  ASSERT_TRUE(has_reader());
  join("b");
  join("c");
  town.nodes.advance(2s);
  ASSERT_EQ(reader(), &first) << "which has had nothing to tell until now";
  first.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return first.ended; }, 20s));
  EXPECT_TRUE(town.nodes.advance_until([&] { return reader() != nullptr; }, 1s));
  EXPECT_TRUE(town.nodes.advance_until([&] { return town.owned_by("b", 4) + town.owned_by("c", 4) == 4; }, 2s));
}

TEST_F(Reactive, a_reader_that_wakes_after_its_right_has_ended_tells_nobody) {
  for (const char* name : {"a", "b", "c"}) join(name);
  settle();
  Town::Citizen* const old = reader();
  ASSERT_NE(old, nullptr);
  old->pause();
  asleep = old;
  town.nodes.advance(town.terms.lease * 2);
  ASSERT_TRUE(has_reader());
  EXPECT_NE(reader(), old);
  post.sent.clear();
  const auto listener = old->store.listener;
  old->loop.post([listener] { listener({1}); });  // before any of its timers
  old->resume();
  town.nodes.advance(1ms);
  EXPECT_THAT(post.sent, IsEmpty());
  town.nodes.advance(5s);
  EXPECT_EQ(old->store.listener, nullptr) << "it has noticed";
}

TEST_F(Reactive, a_reader_whose_right_ends_while_it_asks_whom_to_tell_tells_nobody) {
  for (const char* name : {"a", "b", "c"}) join(name);
  settle();
  tell();  // now it knows some whom it could tell
  town.nodes.advance(town.terms.lease);
  Town::Citizen* const old = reader();
  ASSERT_NE(old, nullptr);
  old->store.latency = 300ms;
  tell();
  town.nodes.advance(100ms);
  old->pause();
  asleep = old;
  town.nodes.advance(town.terms.lease * 2);
  ASSERT_TRUE(has_reader());
  EXPECT_NE(reader(), old);
  post.sent.clear();
  old->resume();
  town.nodes.advance(2s);
  EXPECT_THAT(post.sent, IsEmpty());
}

TEST_F(Reactive, f45_lost_pokes_cost_time_only) {
  town.terms.reconcile_every = 2s;
  town.add("first");
  join("full", 1);
  ASSERT_TRUE(town.nodes.advance_until([&] { return taken("first"); }, 20s));
  ASSERT_TRUE(has_reader());
  join("b");
  town.nodes.advance(2s);
  post.loses = true;
  town.add("x");
  tell();
  EXPECT_TRUE(town.nodes.advance_until([&] { return taken("x"); }, 5s));
}

TEST_F(Reactive, f45_where_there_is_no_stream_the_operator_hears_of_it_once_and_looking_stays) {
  town.terms.reconcile_every = 2s;
  Town::Citizen& one = join("a");
  one.store.has_stream = false;
  ASSERT_TRUE(has_reader());
  for (int i = 0; i < 3; ++i) {
    tell();
    town.nodes.advance(1s);
  }
  EXPECT_EQ(one.said("the stream is off: turn it on"), 1U);
  town.add("x");
  EXPECT_TRUE(town.nodes.advance_until([&] { return taken("x"); }, 5s));
}

TEST_F(Reactive, who_cannot_be_told_reads_nothing_and_makes_no_row) {
  town.changes_need_reader = true;
  Town::Citizen& one = town.join("a");
  town.nodes.advance(1min);
  EXPECT_EQ(one.store.listener, nullptr);
  EXPECT_TRUE(town.row_at(feed_row).key.empty());
}

TEST_F(Reactive, the_row_is_made_by_a_write_that_gives_it_to_nobody) {
  Town::Citizen& one = join("a");
  settle();
  std::vector<Update> writes;
  for (const auto& [at, update] : one.store.updates) {
    if (update.key == feed_row) writes.push_back(update);
  }
  ASSERT_GE(writes.size(), 2U);
  EXPECT_EQ(writes[0].condition, Condition::row_missing());
  for (const Change& change : writes[0].changes) EXPECT_NE(change.attribute, attribute::owner);
}

TEST_F(Reactive, a_row_that_people_have_turned_off_or_damaged_is_left_alone) {
  for (const char* what : {"OFF", "damaged"}) {
    Update update;
    update.key = feed_row;
    update.changes = {Change::set(attribute::desired_state, what == std::string("OFF") ? "OFF" : state::feed),
                      Change::set(attribute::expires_at, 0), Change::set(attribute::owner, 5)};
    if (what == std::string("OFF")) update.changes.back() = Change::remove(attribute::owner);
    (void)town.table->execute(update, WallTime{});
    Town::Citizen& one = join(what);
    town.nodes.advance(20s);
    EXPECT_EQ(reader(), nullptr) << what;
    one.crash();
  }
}

TEST(Pokes, are_read_as_they_are_written_and_only_with_the_right_token) {
  using worker::Poke;
  const std::string token = "0123456789abcdef0123456789abcdef";
  for (const Poke poke : {Poke::rows, Poke::feed}) {
    EXPECT_EQ(worker::read_poke(worker::poke_text(poke, token), token), poke);
    EXPECT_EQ(worker::read_poke(worker::poke_text(poke, "0123456789abcdef0123456789abcdee"), token), std::nullopt);
  }
  EXPECT_EQ(worker::read_poke(worker::poke_text(Poke::rows, ""), ""), std::nullopt) << "no token is no key";
  const worker::PokeAddress address{"10.0.0.7:7400", token};
  const auto again = worker::parse_poke_address(address.text());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->place, address.place);
  EXPECT_EQ(again->token, token);
  for (const char* none :
       {"", "rack 7", "10.0.0.7:7400", "10.0.0.7:7400/", "10.0.0.7:7400/short", "/0123456789abcdef0"})
    EXPECT_FALSE(worker::parse_poke_address(none)) << none;
}

}  // namespace
}  // namespace holdfast::test
