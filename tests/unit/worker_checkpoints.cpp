// When checkpoints are written, and what each request says that it is for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/worker_town.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

using Counts = std::map<std::string, int>;

/// What the updates since then were for.
Counts purposes(const Town::Citizen& citizen, std::size_t since = 0) {
  Counts counts;
  for (std::size_t i = since; i < citizen.store.updates.size(); ++i)
    ++counts[std::string(to_string(citizen.store.updates[i].second.purpose))];
  return counts;
}

bool carries_checkpoint(const Update& update) {
  return std::ranges::any_of(update.changes,
                             [](const Change& change) { return change.attribute == attribute::last_seq; });
}

TEST(Checkpoint, rides_on_renewals_and_takes_no_write_and_no_read_of_its_own) {
  Town town(20s);  // renewed every 5 s
  town.add_many(10);
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(10, 20s));
  town.nodes.advance(6s);  // the rows have their first checkpoint
  const std::size_t before = worker.store.updates.size();
  town.nodes.advance(50s);
  const Counts counts = purposes(worker, before);
  EXPECT_EQ(counts.at("renew"), 100) << "ten connections, ten times each";
  EXPECT_EQ(counts.size(), 2U) << "and the worker's own row, nothing else";
  EXPECT_TRUE(counts.contains("session"));
  for (std::size_t i = before; i < worker.store.updates.size(); ++i) {
    const Update& update = worker.store.updates[i].second;
    if (update.purpose == Purpose::renew) {
      EXPECT_TRUE(carries_checkpoint(update)) << update.key;
    }
  }
  EXPECT_FALSE(worker.store.asked.contains("get") || worker.store.asked.contains("batch_get"))
      << "desired state and last_seq come with the answers to renewals";
}

TEST(Checkpoint, comes_more_often_where_that_is_asked_for) {
  Town town(20s);
  town.add_many(10);
  Town::Citizen& worker = town.join("w", 1000, [](worker::WorkerOptions& options) { options.checkpoint_every = 1s; });
  ASSERT_TRUE(town.all_flow(10, 20s));
  town.nodes.advance(6s);
  const std::size_t before = worker.store.updates.size();
  for (int second = 0; second < 20; ++second) {
    town.nodes.advance(1s);
    for (int i = 0; i < 10; ++i) {
      const std::string id = "c" + std::to_string(i);
      // One message every 20 ms. A second, the spread of 200 ms, and what is on its way.
      EXPECT_GE(town.row(id).number(attribute::last_seq) + 65, town.world.seq(id)) << id;
    }
  }
  const Counts counts = purposes(worker, before);
  EXPECT_GE(counts.at("checkpoint"), 180);
  EXPECT_LE(counts.at("checkpoint"), 210) << "one a second for each, no more";
  EXPECT_GE(counts.at("renew"), 30) << "renewals keep their time";
  EXPECT_LE(counts.at("renew"), 40);
}

TEST(Checkpoint, that_is_asked_for_often_is_not_written_for_a_connection_that_is_silent) {
  Town town(20s);
  town.add_many(1);
  Town::Citizen& worker = town.join("w", 1000, [](worker::WorkerOptions& options) { options.checkpoint_every = 1s; });
  worker.manners["c0"].effects_max = 3;
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.world.seq("c0") == 3; }, 20s));
  town.nodes.advance(6s);
  const std::size_t before = worker.store.updates.size();
  town.nodes.advance(20s);
  EXPECT_FALSE(purposes(worker, before).contains("checkpoint"));
  EXPECT_EQ(purposes(worker, before).at("renew"), 4);
  EXPECT_EQ(town.row("c0").number(attribute::last_seq), 3);
}

TEST(Purpose, of_each_write_of_a_lease_is_told_to_the_store) {
  Town town(20s);
  town.add_many(5);
  Town::Citizen& worker = town.join("w");
  for (int i = 0; i < 5; ++i) worker.manners["c" + std::to_string(i)].tells_of_first = true;
  ASSERT_TRUE(town.all_flow(5, 20s));
  town.nodes.advance(6s);
  worker.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 20s));
  const Counts counts = purposes(worker);
  EXPECT_EQ(counts.at("claim"), 5);
  EXPECT_EQ(counts.at("checkpoint"), 5) << "the first of each row's life";
  EXPECT_GE(counts.at("renew"), 5);
  EXPECT_EQ(counts.at("release"), 5);
  EXPECT_GE(counts.at("session"), 2);
  EXPECT_FALSE(counts.contains("other"));
}

}  // namespace
}  // namespace holdfast::test
