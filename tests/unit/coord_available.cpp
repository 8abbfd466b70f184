// Available mode: the store comes and goes, in virtual time; the journal is a real file.
#include "coord/available.hpp"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/coord/names.hpp"
#include "store/memory/memory_store.hpp"
#include "support/gated_store.hpp"
#include "support/temporary_folder.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;
using test::GatedStore;
using Way = GatedStore::Way;
using testing::ElementsAre;
using testing::HasSubstr;

/// One machine: a journal of its own, and a way to the common table.
class Machine {
 public:
  Machine(std::string path, std::shared_ptr<store::MemoryTable> table, test::VirtualLoop& loop)
      : path_(std::move(path)), table_(std::move(table)), loop_(loop) {
    start();
  }
  ~Machine() { stop(); }

  void start() {
    store = std::make_unique<GatedStore>(store::make_memory_store(table_, loop_), loop_);
    JournalOptions options;
    options.path = path_;
    journal = *Journal::open(options);
    AvailableOptions mode;
    mode.max_age = 1h;
    mode.max_provisional = 50;
    mode.proposer = "me";
    available = std::make_unique<Available>(*journal, *store, loop_, mode);
  }
  /// As if killed: whatever was under way is gone.
  void stop() {
    available.reset();
    journal.reset();
    store->close([] {});
    loop_.settle();
    store.reset();
  }

  template <class T, class Call>
  Ended<Accepted<T>> ask(Call call) {
    std::optional<Ended<Accepted<T>>> got;
    call(*available, [&](Ended<Accepted<T>> result) { got = std::move(result); });
    EXPECT_TRUE(loop_.advance_until([&] { return got.has_value(); }));
    return *got;
  }
  Ended<Accepted<Added>> add(std::int64_t delta, const std::string& ticket, std::optional<std::int64_t> floor = {}) {
    return ask<Added>([&](Available& by, auto then) { by.add({"c", delta, floor}, ticket, then); });
  }
  Ended<Accepted<Decided>> decide(const Value& value, const std::string& ticket) {
    return ask<Decided>([&](Available& by, auto then) { by.decide("k", value, ticket, then); });
  }
  Ended<Accepted<Sent>> send(const std::string& group, const std::string& body, const std::string& ticket) {
    return ask<Sent>([&](Available& by, auto then) { by.send({"q", group, body, 0ms}, ticket, then); });
  }
  Ended<Quota> set_aside(const std::string& id, Basket basket, Duration ttl = 3h) {
    std::optional<Ended<Quota>> got;
    available->set_aside(id, std::move(basket), ttl, [&](Ended<Quota> result) { got = std::move(result); });
    EXPECT_TRUE(loop_.advance_until([&] { return got.has_value(); }));
    return *got;
  }
  Ended<ReconcileReport> reconcile() {
    std::optional<Ended<ReconcileReport>> got;
    ReconcileOptions options;
    options.compensate = [this](const Intent& intent, bool is_repeat, const auto& done) {
      compensated.push_back(intent.ticket + (is_repeat ? " again" : ""));
      done(compensation);
    };
    available->reconcile(options, [&](Ended<ReconcileReport> result) { got = std::move(result); });
    EXPECT_TRUE(loop_.advance_until([&] { return got.has_value(); }));
    return *got;
  }
  [[nodiscard]] Intent intent(const std::string& ticket) const { return journal->find(ticket)->value(); }

  std::unique_ptr<GatedStore> store;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Available> available;
  std::vector<std::string> compensated;
  Result<void> compensation;

 private:
  const std::string path_;
  const std::shared_ptr<store::MemoryTable> table_;
  test::VirtualLoop& loop_;
};

template <class T>
bool is_committed(const Ended<Accepted<T>>& result) {
  EXPECT_TRUE(result) << result.error().error.detail;
  return result && std::holds_alternative<Committed<T>>(*result);
}
template <class T>
bool is_provisional(const Ended<Accepted<T>>& result) {
  EXPECT_TRUE(result) << result.error().error.detail;
  return result && std::holds_alternative<Provisional>(*result);
}

class AvailableTest : public testing::Test {
 protected:
  AvailableTest() { here_ = join("here"); }
  std::unique_ptr<Machine> join(const std::string& name) {
    return std::make_unique<Machine>(folder_.file(name), table_, loop_);
  }
  std::optional<Row> row(const std::string& key) {
    return std::get<RowReply>(table_->execute(store::Get{key}, loop_.wall())).value;
  }
  std::int64_t number(const std::string& key, std::string_view name) {
    const auto found = row(key);
    return found ? found->number(name) : 0;
  }
  std::int64_t count() { return number("COUNTER#c", coord::value); }
  std::int64_t hats() { return number("STOCK#hat", coord::available); }
  void put_hats(std::int64_t hats) {
    const Update update{"STOCK#hat", {Change::set(coord::available, hats)}, Condition::always()};
    (void)table_->execute(update, loop_.wall());
  }
  std::vector<std::string> bodies(const std::string& group) {
    std::vector<std::string> all;
    for (std::int64_t seq = 1; auto found = row(message_key("q", group, seq)); ++seq) {
      all.emplace_back(found->text(coord::body));
    }
    return all;
  }

  test::TemporaryFolder folder_;
  test::VirtualLoop loop_;
  std::shared_ptr<store::MemoryTable> table_ = std::make_shared<store::MemoryTable>();
  std::unique_ptr<Machine> here_;
};

TEST_F(AvailableTest, while_the_store_is_there_everything_is_committed_at_once) {
  EXPECT_TRUE(is_committed(here_->add(2, "a")));
  EXPECT_TRUE(is_committed(here_->decide("x", "d")));
  EXPECT_TRUE(is_committed(here_->send("g", "1", "s")));
  EXPECT_EQ(*here_->journal->count_open(), 0U);
  EXPECT_EQ(count(), 2);
}

TEST_F(AvailableTest, while_it_is_away_everything_is_provisional_and_happens_once_when_it_is_back) {
  here_->store->way = Way::shut;
  const Instant before = loop_.instant();
  EXPECT_TRUE(is_provisional(here_->add(2, "a")));
  EXPECT_LE(loop_.instant() - before, 2s + 1ms) << "no longer than the patience of the caller, and a request";
  EXPECT_TRUE(is_provisional(here_->add(2, "a"))) << "the same ticket";
  EXPECT_TRUE(is_provisional(here_->decide("x", "d")));
  EXPECT_TRUE(is_provisional(here_->send("g", "1", "s1")));
  EXPECT_TRUE(is_provisional(here_->send("g", "2", "s2")));
  const auto away = here_->reconcile();
  ASSERT_TRUE(away);
  EXPECT_TRUE(away->store_is_away);
  EXPECT_EQ(away->left, 4U);

  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->confirmed, 4U);
  EXPECT_TRUE(report->is_all());
  EXPECT_EQ(count(), 2);
  EXPECT_THAT(bodies("g"), ElementsAre("1", "2"));
  EXPECT_EQ(here_->reconcile()->confirmed, 0U);
  EXPECT_EQ(count(), 2);
}

TEST_F(AvailableTest, what_comes_after_something_that_waits_waits_too_so_that_order_is_kept) {
  here_->store->way = Way::shut;
  EXPECT_TRUE(is_provisional(here_->send("g", "1", "s1")));
  here_->store->way = Way::open;
  EXPECT_TRUE(is_provisional(here_->send("g", "2", "s2")));
  EXPECT_TRUE(is_committed(here_->send("other", "3", "s3")));
  ASSERT_TRUE(here_->reconcile());
  EXPECT_TRUE(is_committed(here_->send("g", "3", "s4")));
  EXPECT_THAT(bodies("g"), ElementsAre("1", "2", "3"));
}

TEST_F(AvailableTest, f29_a_reply_that_was_lost_does_not_make_it_happen_twice) {
  here_->store->way = Way::breaking;
  EXPECT_TRUE(is_provisional(here_->add(2, "a")));
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(here_->intent("a").state, Intent::State::begun) << "it may have happened";
  here_->store->way = Way::open;
  EXPECT_EQ(here_->reconcile()->confirmed, 1U);
  EXPECT_EQ(count(), 2);
  EXPECT_TRUE(is_committed(here_->add(2, "a")));
  EXPECT_EQ(count(), 2);
}

TEST_F(AvailableTest, of_a_decision_that_was_anothers_the_merge_judges) {
  const auto there = join("there");
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->decide("mine", "d")));
  const auto second = here_->decide("also mine", "e");
  ASSERT_TRUE(is_provisional(second));
  EXPECT_EQ(std::get<Provisional>(*second).ticket, "d") << "the first proposal wins here too";
  ASSERT_TRUE(is_committed(there->decide("theirs", "x")));
  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  EXPECT_EQ(report->rejected, 1U);
  EXPECT_THAT(here_->compensated, ElementsAre("d"));
  EXPECT_THAT(here_->intent("d").note, HasSubstr("me#x"));
}

TEST_F(AvailableTest, what_the_rules_refuse_is_rejected_and_compensated_once) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  here_->store->way = Way::open;
  EXPECT_EQ(here_->reconcile()->compensated, 1U);
  ASSERT_TRUE(here_->reconcile());
  EXPECT_THAT(here_->compensated, ElementsAre("a"));
  EXPECT_EQ(here_->add(-1, "a", 0).error().kind, Failure::Kind::refused) << "a ticket ends once";
}

TEST_F(AvailableTest, it_is_noted_as_begun_before_the_store_is_asked) {
  here_->store->way = Way::shut;
  const auto accepted = here_->add(1, "");
  ASSERT_TRUE(is_provisional(accepted));
  const std::string ticket = std::get<Provisional>(*accepted).ticket;
  EXPECT_EQ(here_->intent(ticket).state, Intent::State::accepted);
  here_->store->way = Way::open;
  bool asked = false;
  here_->store->before = [&] {
    asked = true;
    EXPECT_NE(here_->intent(ticket).state, Intent::State::accepted);
  };
  ASSERT_TRUE(here_->reconcile());
  EXPECT_TRUE(asked);
}

TEST_F(AvailableTest, a_rejected_ticket_is_precluded_in_the_store) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  here_->store->way = Way::open;
  ASSERT_TRUE(here_->reconcile());
  EXPECT_TRUE(row(operation_key(Add::row_key(AddOptions::To::counter, "c"), "a"))) << "a late request finds it taken";
}

TEST_F(AvailableTest, a_compensation_that_failed_or_was_broken_off_is_told_that_it_is_a_repeat) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  here_->store->way = Way::open;
  here_->compensation = fail(Code::unavailable, "no mail");
  const auto failed = here_->reconcile();
  EXPECT_EQ(failed->left, 1U);
  EXPECT_THAT(failed->notes, ElementsAre(HasSubstr("no mail")));
  here_->stop();
  here_->start();
  here_->compensation = {};
  EXPECT_TRUE(here_->reconcile()->is_all());
  EXPECT_THAT(here_->compensated, ElementsAre("a", "a again"));
}

TEST_F(AvailableTest, what_is_too_old_is_rejected_and_never_happens) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(1, "a")));
  here_->store->way = Way::breaking;
  ASSERT_TRUE(is_provisional(here_->add(1, "b")));
  here_->store->way = Way::open;
  loop_.advance(1h);
  EXPECT_EQ(here_->reconcile()->rejected, 2U) << "b waited behind a";
  EXPECT_EQ(count(), 0);
}

TEST_F(AvailableTest, what_is_too_old_and_may_have_happened_is_looked_for) {
  here_->store->way = Way::breaking;
  ASSERT_TRUE(is_provisional(here_->add(1, "a")));
  here_->store->way = Way::open;
  loop_.advance(1h);
  EXPECT_EQ(here_->reconcile()->confirmed, 1U);
  EXPECT_EQ(count(), 1);
}

TEST_F(AvailableTest, one_whose_row_the_store_rejects_holds_up_its_own_subject_only) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(1, "rejected")));
  ASSERT_TRUE(is_provisional(here_->send("g", "1", "s")));
  here_->store->way = Way::open;
  here_->store->rejects = "rejected";
  loop_.advance(1h);
  const auto report = here_->reconcile();
  EXPECT_FALSE(report->store_is_away);
  EXPECT_EQ(report->left, 1U);
  EXPECT_TRUE(here_->intent("s").is_settled());
}

// Found by the simulation: its caller is killed, calls again while the store is away, and nobody comes to reconcile
// in time. It was rejected and compensated, and had happened.
TEST_F(AvailableTest, a_ticket_that_was_carried_out_before_its_caller_was_killed_is_never_rejected) {
  ASSERT_TRUE(is_committed(here_->add(1, "a")));
  ASSERT_TRUE(is_committed(here_->send("g", "1", "s")));
  ASSERT_TRUE(is_committed(here_->decide("x", "d")));
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(1, "a")));
  ASSERT_TRUE(is_provisional(here_->send("g", "1", "s")));
  ASSERT_TRUE(is_provisional(here_->decide("x", "d")));
  here_->store->way = Way::open;
  loop_.advance(2h);
  const auto report = here_->reconcile();
  EXPECT_EQ(report->confirmed, 3U);
  EXPECT_EQ(report->rejected, 0U);
  EXPECT_THAT(here_->compensated, ElementsAre());
  EXPECT_EQ(count(), 1);
}

TEST_F(AvailableTest, one_that_is_stuck_holds_up_its_own_subject_only) {
  (void)table_->execute(Update{"COUNTER#c", {Change::set(coord::value, "many")}, Condition::always()}, loop_.wall());
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(1, "a")));
  ASSERT_TRUE(is_provisional(here_->add(1, "b")));
  ASSERT_TRUE(is_provisional(here_->send("g", "1", "s")));
  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  EXPECT_EQ(report->confirmed, 1U);
  EXPECT_EQ(report->left, 2U);
  EXPECT_FALSE(here_->intent("b").is_settled());
}

TEST_F(AvailableTest, stock_is_sold_out_of_what_was_set_aside_and_the_rest_comes_back) {
  put_hats(10);
  ASSERT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  EXPECT_TRUE(here_->set_aside("quota", {{"hat", 4}})) << "asked again";
  EXPECT_EQ(hats(), 6);
  here_->store->way = Way::shut;
  ASSERT_TRUE(here_->available->sell({{"hat", 3}}, "a"));
  EXPECT_EQ(here_->available->sell({{"hat", 2}}, "b").error().kind, Failure::Kind::refused);
  ASSERT_TRUE(*here_->available->give_back("quota"));
  EXPECT_EQ(here_->available->sell({{"hat", 1}}, "c").error().kind, Failure::Kind::refused);
  EXPECT_TRUE(here_->reconcile()->store_is_away);
  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  EXPECT_EQ(report->confirmed, 1U);
  EXPECT_EQ(report->quotas_returned, 1U);
  EXPECT_EQ(hats(), 7);
  EXPECT_EQ(here_->reconcile()->quotas_returned, 0U);
}

TEST_F(AvailableTest, a_quota_that_was_ended_by_another_sells_nothing_more) {
  put_hats(10);
  ASSERT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  ASSERT_TRUE(here_->available->sell({{"hat", 1}}, "a"));
  (void)table_->execute(Update{"RESERVATION#quota", {Change::set(coord::outcome, "cancelled")}, Condition::always()},
                        loop_.wall());
  EXPECT_EQ(here_->reconcile()->rejected, 1U);
  EXPECT_THAT(here_->compensated, ElementsAre("a"));
  EXPECT_EQ(here_->available->sell({{"hat", 1}}, "b").error().kind, Failure::Kind::refused);
}

TEST_F(AvailableTest, a_quota_that_the_store_was_too_slow_for_is_there_when_it_is_asked_for_again) {
  put_hats(10);
  here_->store->way = Way::breaking;
  EXPECT_EQ(here_->set_aside("quota", {{"hat", 4}}).error().kind, Failure::Kind::unknown);
  here_->store->way = Way::open;
  EXPECT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  EXPECT_EQ(hats(), 6);
  EXPECT_EQ(here_->set_aside("quota", {{"hat", 5}}).error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(here_->set_aside("more", {{"hat", 7}}).error().kind, Failure::Kind::refused);
}

TEST_F(AvailableTest, a_decision_under_its_ticket_with_another_value_is_a_mismatch) {
  ASSERT_TRUE(is_committed(here_->decide(Value("yes"), "t")));
  EXPECT_TRUE(is_committed(here_->decide(Value("yes"), "t")));
  EXPECT_EQ(here_->decide(Value("no"), "t").error().kind, Failure::Kind::mismatch);
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->decide(Value("no"), "t")));
  here_->store->way = Way::open;
  EXPECT_EQ(here_->reconcile()->rejected, 1U);
  EXPECT_THAT(here_->compensated, ElementsAre("t"));
}

TEST_F(AvailableTest, tickets_have_names_of_a_length_that_fits_into_a_row) {
  EXPECT_EQ(here_->add(1, std::string(501, 't')).error().kind, Failure::Kind::rejected);
  EXPECT_EQ(here_->available->sell({{"hat", 1}}, std::string(501, 't')).error().kind, Failure::Kind::rejected);
  EXPECT_EQ(here_->set_aside(std::string(501, 'q'), {{"hat", 1}}).error().kind, Failure::Kind::rejected);
  EXPECT_TRUE(is_committed(here_->add(1, std::string(500, 't'))));
  EXPECT_TRUE(is_committed(here_->add(0, "nothing"))) << "as in the consistent mode";
}

TEST_F(AvailableTest, a_quota_that_was_refused_or_given_back_stays_refused_however_often_it_is_asked_for) {
  put_hats(10);
  EXPECT_EQ(here_->set_aside("more", {{"hat", 11}}).error().kind, Failure::Kind::refused);
  EXPECT_EQ(here_->set_aside("more", {{"hat", 11}}).error().kind, Failure::Kind::refused);
  ASSERT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  ASSERT_TRUE(*here_->available->give_back("quota"));
  EXPECT_EQ(here_->set_aside("quota", {{"hat", 4}}).error().kind, Failure::Kind::refused);
  ASSERT_EQ(here_->reconcile()->quotas_returned, 1U);
  EXPECT_EQ(here_->set_aside("quota", {{"hat", 4}}).error().kind, Failure::Kind::refused);
  EXPECT_EQ(hats(), 10);
}

// Two machines, each with a journal; the way to the store comes and goes, replies get lost, processes die at any
// time. Compared with a plain account of what was accepted.
TEST_F(AvailableTest, whatever_happens_it_adds_up) {
  struct Account {
    std::int64_t added = 0, sold = 0;
    std::map<std::string, std::vector<std::string>> sent;  // by group, in the order of acceptance
  };
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    Random chance(seed);
    table_ = std::make_shared<store::MemoryTable>();
    here_.reset();
    put_hats(20);
    Account account;
    std::vector<std::unique_ptr<Machine>> machines;
    for (int i = 0; i < 2; ++i) {
      machines.push_back(join(std::to_string(seed) + "-" + std::to_string(i)));
      ASSERT_TRUE(machines.back()->set_aside("quota" + std::to_string(i), {{"hat", 6}}));
    }
    for (int step = 0; step < 24; ++step) {
      const std::size_t who = chance.below(2);
      Machine& machine = *machines[who];
      const std::string ticket = std::to_string(step);
      const std::string group = std::to_string(who) + "-" + std::to_string(chance.below(2));
      const std::int64_t size = static_cast<std::int64_t>(chance.below(3)) + 1;
      switch (chance.below(7)) {
        case 0:
          machine.store->way = static_cast<Way>(chance.below(3));
          break;
        case 1:
          if (machine.add(size, ticket)) account.added += size;
          break;
        case 2:
        case 3:
          if (machine.send(group, ticket, ticket)) account.sent[group].push_back(ticket);
          break;
        case 4:
          if (machine.available->sell({{"hat", size}}, ticket)) account.sold += size;
          break;
        case 5:
          machine.available->reconcile({}, [](const auto&) {});
          loop_.advance(chance.between(0ms, 20ms));  // and then it dies, wherever it is
          [[fallthrough]];
        case 6:
          machine.stop();
          machine.start();
          break;
      }
    }
    for (const auto& machine : machines) {
      const std::string quota = machine == machines.front() ? "quota0" : "quota1";
      ASSERT_TRUE(machine->available->give_back(quota));
      machine->store->way = Way::open;
      ASSERT_TRUE(machine->reconcile()->is_all());
      EXPECT_TRUE(machine->compensated.empty()) << "nothing was accepted that could not be kept";
      const auto settled = machine->journal->list(Journal::Which::all, 0, 1000);
      for (const Intent& each : *settled) EXPECT_EQ(each.state, Intent::State::confirmed) << each.ticket;
      EXPECT_EQ(machine->journal->quotas()->front().state, Quota::State::returned);
    }
    EXPECT_EQ(count(), account.added);
    EXPECT_LE(account.sold, 12);
    EXPECT_EQ(hats(), 20 - account.sold);
    for (const auto& [group, sent] : account.sent) EXPECT_EQ(bodies(group), sent) << group;
  }
}

}  // namespace
}  // namespace holdfast::coord
