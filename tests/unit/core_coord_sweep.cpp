// Every primitive, with everything that can happen to each of its requests: whatever the mishap and wherever it
// strikes, and wherever the caller dies, what follows adds up.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/coord/counter.hpp"
#include "core/coord/decision.hpp"
#include "core/coord/names.hpp"
#include "core/coord/once.hpp"
#include "core/coord/queue.hpp"
#include "core/coord/stock.hpp"
#include "core/coord/task_look.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::every_mishap;
using test::LeaseTable;
using test::Mishap;
using test::ProcedureRun;
using State = Reservation::State;

constexpr Duration patience = 10s;
constexpr Duration skew = 500ms;

/// A table in which one of each primitive has something to do.
struct World {
  World() {
    table.add(Reserve::stock_key("hat")).attributes.insert_or_assign(std::string(coord::available), Value(5));
    for (const char* id : {"held", "late"}) {
      Reserve reserving({id, {{"hat", 1}}, std::string_view(id) == "late" ? 1s : Duration(1h)}, deadline(), random);
      run.run(reserving);
    }
    for (const char* body : {"1", "2"}) {
      Send sending({"q", "g", body}, deadline(), random);
      run.run(sending);
    }
    for (const char* body : {"1", "2", "3"}) {
      Send sending({"held", "g", body}, deadline(), random);
      run.run(sending);
    }
    receipt = receive("held").value().receipt;
    Send sending({"parked", "g", "1"}, deadline(), random);
    run.run(sending);
    Settle parking(receive("parked").value().receipt, {.kind = Settlement::Kind::park, .reason = "r"}, deadline(),
                   random);
    run.run(parking);
    for (const Duration delay : {Duration(0s), Duration(1h)}) {
      Send late({.queue = "late", .group = "g", .body = "x", .delay = delay}, deadline(), random);
      run.run(late);
    }
    Row& task = table.add(task_key(TaskView::Kind::task, "t"));
    task.attributes.insert_or_assign(std::string(attribute::owner), Value("somebody"));
    task.attributes.insert_or_assign(std::string(attribute::epoch), Value(3));
    run.pass(5s);
    run.requests = 0;
  }

  [[nodiscard]] Instant deadline() const { return run.now.instant + patience; }
  Receive receiving(std::string queue) {
    ReceiveOptions options;
    options.queue = std::move(queue);
    return {options, WorkerId("c"), deadline(), random};
  }
  std::optional<Batch> receive(std::string queue) {
    Receive receiving_now = receiving(std::move(queue));
    run.run(receiving_now);
    return receiving_now.result()->value_or(std::nullopt);
  }
  [[nodiscard]] Reservation reservation(std::string_view id) const {
    return reservation_in(*table.find(Reserve::row_key(id))).value();
  }
  [[nodiscard]] std::int64_t hats() const { return table.find(Reserve::stock_key("hat"))->number(coord::available); }
  [[nodiscard]] Group group(std::string_view queue) const {
    return group_in(*table.find(group_key(queue, "g"))).value();
  }

  LeaseTable table;
  ProcedureRun run{table};
  Random random{7};
  Receipt receipt;
};

struct Primitive {
  const char* name;
  std::function<std::unique_ptr<Procedure>(World&)> begin;
  /// It ended well, in this world, for the first time.
  std::function<void(Procedure&)> expect_done;
  /// What the table must say once it has been carried out.
  std::function<void(const World&)> expect_table;
};

template <class P>
const auto& result_of(Procedure& procedure) {
  return dynamic_cast<P&>(procedure).result().value();
}

template <class P>
void expect_well(Procedure& procedure) {
  const auto& result = result_of<P>(procedure);
  ASSERT_TRUE(result) << result.error().error.detail;
}

Primitive ending(const char* name, const char* id, State into, std::int64_t hats) {
  return {name,
          [=](World& world) {
            return std::make_unique<EndReservation>(world.reservation(id), into, skew, world.deadline(),
                                                    world.random);
          },
          [](Procedure& procedure) {
            expect_well<EndReservation>(procedure);
            EXPECT_FALSE(result_of<EndReservation>(procedure)->was_repeat);
          },
          [=](const World& world) {
            EXPECT_EQ(world.reservation(id).state, into);
            EXPECT_EQ(world.hats(), hats);
          }};
}

Primitive settling(const char* name, Settlement settlement, std::function<void(const World&)> expect) {
  return {name,
          [=](World& world) {
            return std::make_unique<Settle>(world.receipt, settlement, world.deadline(), world.random);
          },
          expect_well<Settle>, std::move(expect)};
}

std::vector<Primitive> primitives() {
  std::vector<Primitive> all;
  all.push_back(
      {"decide",
       [](World& world) {
         return std::make_unique<Decide>("k", Value("mine"), "me", world.deadline(), world.random);
       },
       [](Procedure& procedure) {
         expect_well<Decide>(procedure);
         EXPECT_TRUE(result_of<Decide>(procedure)->was_ours);
       },
       [](const World& world) { EXPECT_EQ(decided_in(*world.table.find("DECISION#k"))->value, Value("mine")); }});
  all.push_back({"add",
                 [](World& world) {
                   return std::make_unique<Add>(AddOptions{"n", 3, "op"}, world.deadline(), world.random);
                 },
                 [](Procedure& procedure) {
                   expect_well<Add>(procedure);
                   EXPECT_FALSE(result_of<Add>(procedure)->was_repeat);
                   EXPECT_EQ(result_of<Add>(procedure)->value, 3);
                 },
                 [](const World& world) { EXPECT_EQ(world.table.find("COUNTER#n")->number(coord::value), 3); }});
  all.push_back(
      {"reserve",
       [](World& world) {
         return std::make_unique<Reserve>(ReserveOptions{"new", {{"hat", 2}}}, world.deadline(), world.random);
       },
       [](Procedure& procedure) {
         expect_well<Reserve>(procedure);
         EXPECT_FALSE(result_of<Reserve>(procedure)->was_repeat);
       },
       [](const World& world) {
         EXPECT_EQ(world.reservation("new").state, State::held);
         EXPECT_EQ(world.hats(), 1);
       }});
  all.push_back(ending("confirm", "held", State::confirmed, 3));
  all.push_back(ending("cancel", "held", State::cancelled, 4));
  all.push_back(ending("return what expired", "late", State::expired, 4));
  all.push_back(
      {"return all that expired",
       [](World& world) { return std::make_unique<ReturnExpired>(skew, 10, world.deadline(), world.random); },
       [](Procedure& procedure) {
         expect_well<ReturnExpired>(procedure);
         EXPECT_EQ(*result_of<ReturnExpired>(procedure), 1U);
       },
       [](const World& world) {
         EXPECT_EQ(world.reservation("late").state, State::expired);
         EXPECT_EQ(world.reservation("held").state, State::held);
         EXPECT_EQ(world.hats(), 4);
       }});
  all.push_back({"send",
                 [](World& world) {
                   return std::make_unique<Send>(SendOptions{"q", "g", "3", "id"}, world.deadline(), world.random);
                 },
                 [](Procedure& procedure) {
                   expect_well<Send>(procedure);
                   EXPECT_EQ(result_of<Send>(procedure)->seq, 3);
                   EXPECT_FALSE(result_of<Send>(procedure)->was_duplicate);
                 },
                 [](const World& world) {
                   EXPECT_EQ(world.group("q").tail, 3);
                   EXPECT_EQ(message_in(*world.table.find(message_key("q", "g", 3)))->body, "3");
                 }});
  all.push_back({"receive", [](World& world) { return std::make_unique<Receive>(world.receiving("q")); },
                 [](Procedure& procedure) {
                   expect_well<Receive>(procedure);
                   ASSERT_TRUE(*result_of<Receive>(procedure));
                   EXPECT_EQ((*result_of<Receive>(procedure))->messages.size(), 2U);
                   EXPECT_EQ((*result_of<Receive>(procedure))->receives, 1);
                 },
                 [](const World& world) {
                   EXPECT_EQ(world.group("q").owner, "c");
                   EXPECT_EQ(world.group("q").epoch, Epoch{1});
                 }});
  all.push_back({"receive what is delayed further on",
                 [](World& world) { return std::make_unique<Receive>(world.receiving("late")); },
                 [](Procedure& procedure) {
                   expect_well<Receive>(procedure);
                   ASSERT_TRUE(*result_of<Receive>(procedure));
                   EXPECT_EQ((*result_of<Receive>(procedure))->messages.size(), 1U);
                 },
                 [](const World& world) {
                   EXPECT_EQ(world.group("late").owner, "c");
                   EXPECT_EQ(world.table.find(group_key("late", "g"))->number(coord::leased_last), 1);
                 }});
  all.push_back(settling("ack", {Settlement::Kind::ack, 2}, [](const World& world) {
    EXPECT_EQ(world.group("held").head, 3);
    EXPECT_EQ(world.group("held").owner, "c");
  }));
  all.push_back(settling("ack all", {Settlement::Kind::ack, 3},
                         [](const World& world) { EXPECT_EQ(world.group("held").state, Group::State::empty); }));
  all.push_back(settling("nack", {.kind = Settlement::Kind::nack, .delay = 1h}, [](const World& world) {
    EXPECT_EQ(world.group("held").head, 1);
    EXPECT_EQ(world.group("held").owner, "");
  }));
  all.push_back(settling("extend", {.kind = Settlement::Kind::extend, .visibility = 1h},
                         [](const World& world) { EXPECT_GT(world.group("held").due, world.run.now.wall + 59min); }));
  all.push_back(settling("park", {.kind = Settlement::Kind::park, .reason = "r"},
                         [](const World& world) { EXPECT_EQ(world.group("held").state, Group::State::parked); }));
  all.push_back(
      {"move away",
       [](World& world) { return std::make_unique<MoveAway>(world.receipt, "dead", world.deadline(), world.random); },
       expect_well<MoveAway>,
       [](const World& world) {
         EXPECT_EQ(world.group("held").head, 2);
         EXPECT_EQ(world.group("dead").size(), 1);
       }});
  all.push_back(
      {"redrive",
       [](World& world) { return std::make_unique<Redrive>("parked", "g", false, world.deadline(), world.random); },
       expect_well<Redrive>,
       [](const World& world) { EXPECT_EQ(world.group("parked").state, Group::State::ready); }});
  all.push_back({"release by hand",
                 [](World& world) {
                   return std::make_unique<ReleaseTask>(TaskView::Kind::task, "t", Epoch{3}, world.deadline(),
                                                        world.random);
                 },
                 [](Procedure& procedure) {
                   expect_well<ReleaseTask>(procedure);
                   EXPECT_FALSE(result_of<ReleaseTask>(procedure)->was_repeat);
                 },
                 [](const World& world) {
                   const Row& task = *world.table.find(task_key(TaskView::Kind::task, "t"));
                   EXPECT_EQ(task.text(attribute::owner), "");
                   EXPECT_EQ(task.number(attribute::epoch), 3);
                 }});
  return all;
}

int requests_of(const Primitive& primitive) {
  World world;
  const auto procedure = primitive.begin(world);
  world.run.run(*procedure);
  return world.run.requests;
}

TEST(CoordSweep, whatever_befalls_any_request_of_any_primitive_it_is_done_once) {
  for (const Primitive& primitive : primitives()) {
    const int requests = requests_of(primitive);
    ASSERT_GE(requests, 2) << primitive.name;
    for (const Mishap mishap : every_mishap) {
      for (int nth = 0; nth < requests; ++nth) {
        SCOPED_TRACE(testing::Message() << primitive.name << ": mishap " << static_cast<int>(mishap) << " at request "
                                        << nth);
        World world;
        world.run.mishap = [&](int request, bool) { return request == nth ? mishap : Mishap::none; };
        const auto procedure = primitive.begin(world);
        world.run.run(*procedure);
        primitive.expect_done(*procedure);
        primitive.expect_table(world);
        world.run.arrive_late();
        primitive.expect_table(world);
      }
    }
  }
}

TEST(CoordSweep, after_a_caller_who_died_anywhere_the_same_call_leaves_it_done_once) {
  for (const Primitive& primitive : primitives()) {
    // A consumer that died gives back by expiry.
    if (std::string_view(primitive.name).starts_with("receive")) continue;
    const int requests = requests_of(primitive);
    for (int died_after = 0; died_after <= requests; ++died_after) {
      for (const bool on_its_way : {false, true}) {  // its latest request, when it died
        SCOPED_TRACE(testing::Message() << primitive.name << ": died after request " << died_after
                                        << (on_its_way ? ", which arrives later" : ""));
        World world;
        world.run.mishap = [&](int request, bool) {
          return on_its_way && request == died_after - 1 ? Mishap::late_request : Mishap::none;
        };
        const auto dead = primitive.begin(world);
        for (int step = 0; step < died_after; ++step) world.run.step(*dead);
        world.run.mishap = [](int, bool) { return Mishap::none; };
        const auto again = primitive.begin(world);
        world.run.run(*again);
        primitive.expect_table(world);
        world.run.arrive_late();
        primitive.expect_table(world);
      }
    }
  }
}

TEST(CoordSweep, a_store_that_is_away_for_good_is_told_by_the_deadline) {
  for (const Primitive& primitive : primitives()) {
    SCOPED_TRACE(primitive.name);
    World world;
    const auto procedure = primitive.begin(world);
    const Instant deadline = procedure->deadline();
    world.run.mishap = [](int, bool) { return Mishap::lost_request; };
    world.run.run(*procedure);
    EXPECT_GE(world.run.now.instant, deadline);
    EXPECT_LE(world.run.now.instant, deadline + 2ms);
    EXPECT_LE(world.run.requests, 60) << "at a pace that slows down";
  }
}

/// Two procedures, one request at a time, in every order that two can take.
void in_every_order(
    const std::function<std::pair<std::unique_ptr<Procedure>, std::unique_ptr<Procedure>>(World&)>& begin,
    const std::function<void(World&, const std::string& order)>& expect) {
  constexpr int choices = 8;
  for (unsigned order = 0; order < 1U << choices; ++order) {
    World world;
    const auto both = begin(world);
    std::string steps;
    for (int i = 0; i < choices; ++i) {
      const bool first = (order >> i & 1U) == 0;
      world.run.step(first ? *both.first : *both.second);
      steps += first ? 'a' : 'b';
    }
    world.run.run(*both.first);
    world.run.run(*both.second);
    expect(world, steps);
  }
}

TEST(CoordSweep, a_message_that_is_sent_while_its_group_becomes_empty_is_found) {
  in_every_order(
      [](World& world) {
        return std::pair<std::unique_ptr<Procedure>, std::unique_ptr<Procedure>>{
            std::make_unique<Settle>(world.receipt, Settlement{Settlement::Kind::ack, 3}, world.deadline(),
                                     world.random),
            std::make_unique<Send>(SendOptions{"held", "g", "4"}, world.deadline(), world.random)};
      },
      [](World& world, const std::string& order) {
        const auto batch = world.receive("held");
        ASSERT_TRUE(batch) << order;
        ASSERT_EQ(batch->messages.size(), 1U) << order;
        EXPECT_EQ(batch->messages.front().body, "4");
      });
}

TEST(CoordSweep, two_who_end_one_reservation_in_two_ways_agree) {
  in_every_order(
      [](World& world) {
        return std::pair<std::unique_ptr<Procedure>, std::unique_ptr<Procedure>>{
            std::make_unique<EndReservation>(world.reservation("held"), State::confirmed, skew, world.deadline(),
                                             world.random),
            std::make_unique<EndReservation>(world.reservation("held"), State::cancelled, skew, world.deadline(),
                                             world.random)};
      },
      [](World& world, const std::string& order) {
        const bool confirmed = world.reservation("held").state == State::confirmed;
        EXPECT_EQ(world.hats(), confirmed ? 3 : 4) << order;
      });
}

TEST(CoordSweep, f31_two_consumers_who_look_at_once_do_not_get_parts_of_one_group) {
  in_every_order(
      [](World& world) {
        ReceiveOptions options;
        options.queue = "q";
        return std::pair<std::unique_ptr<Procedure>, std::unique_ptr<Procedure>>{
            std::make_unique<Receive>(options, WorkerId("c1"), world.deadline(), world.random),
            std::make_unique<Receive>(options, WorkerId("c2"), world.deadline(), world.random)};
      },
      [](World& world, const std::string& order) {
        EXPECT_EQ(world.group("q").epoch, Epoch{1}) << order;
        EXPECT_EQ(world.group("q").receives, 1) << order;
      });
}

/// What comes late from a consumer's earlier request must not undo what it did since.
TEST(CoordSweep, an_earlier_acknowledgement_that_arrives_late_brings_nothing_back) {
  World world;
  world.run.mishap = [](int, bool is_write) { return is_write ? Mishap::late_request : Mishap::none; };
  Settle first(world.receipt, {Settlement::Kind::ack, 1}, world.run.now.instant + 2ms, world.random);
  world.run.run(first);
  ASSERT_EQ(result_of<Settle>(first).error().kind, Failure::Kind::unknown) << "there was time to send it";
  world.run.mishap = [](int, bool) { return Mishap::none; };
  Settle second(world.receipt, {Settlement::Kind::ack, 2}, world.deadline(), world.random);
  world.run.run(second);
  world.run.arrive_late();
  EXPECT_EQ(world.group("held").head, 3);
}

TEST(CoordSweep, an_earlier_extension_that_arrives_late_takes_nothing_back) {
  World world;
  world.run.mishap = [](int, bool is_write) { return is_write ? Mishap::twice : Mishap::none; };
  Settle first(world.receipt, {.kind = Settlement::Kind::extend, .visibility = 1min}, world.deadline(), world.random);
  world.run.run(first);
  world.run.mishap = [](int, bool) { return Mishap::none; };
  Settle second(world.receipt, {.kind = Settlement::Kind::extend, .visibility = 1h}, world.deadline(), world.random);
  world.run.run(second);
  world.run.arrive_late();
  EXPECT_GT(world.group("held").due, world.run.now.wall + 59min);
}

TEST(CoordSweep, a_late_consumer_whose_request_may_have_been_in_time_is_told_so) {
  World world;
  int writes = 0;
  world.run.mishap = [&](int, bool is_write) {
    if (!is_write) return Mishap::none;
    ++writes;
    return Mishap::lost_reply;
  };
  Settle acknowledging(world.receipt, {Settlement::Kind::nack}, world.deadline(), world.random);
  while (writes == 0) world.run.step(acknowledging);
  world.run.mishap = [](int, bool) { return Mishap::none; };
  ASSERT_TRUE(world.receive("held"));
  world.run.run(acknowledging);
  EXPECT_EQ(result_of<Settle>(acknowledging).error().kind, Failure::Kind::unknown);
}

/// Receive counts its belief from the request that was applied, or from an earlier one (S4).
TEST(CoordSweep, a_batch_is_believed_no_longer_than_its_lease) {
  for (const Mishap mishap : every_mishap) {
    World world;
    int writes = 0;
    world.run.mishap = [&](int, bool is_write) { return is_write && writes++ == 0 ? mishap : Mishap::none; };
    Receive receiving = world.receiving("q");
    world.run.run(receiving);
    world.run.arrive_late();
    const auto& batch = receiving.result()->value();
    ASSERT_TRUE(batch);
    const Duration believed = batch->until - world.run.now.instant;
    EXPECT_LE(believed, world.group("q").due - world.run.now.wall) << static_cast<int>(mishap);
  }
}

}  // namespace
}  // namespace holdfast
