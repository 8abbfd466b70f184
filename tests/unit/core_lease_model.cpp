// Several workers, their clocks off by as much as is allowed, share one table over a network that loses, delays
// and repeats; processes pause and die. After every event the safety rules S1, S3, S4 and S9 are checked. A seed
// names a whole run: it repeats exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "core/keeper.hpp"
#include "support/lease_table.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr Duration lease = 10s;
constexpr Duration skew = lease / 20;

struct Happened {  // over all seeds: what did not happen was not tested
  std::uint64_t takeovers = 0, losses = 0, settled = 0, late = 0, duplicates = 0, plain_claims = 0, checks = 0;
  std::uint64_t moved_ahead = 0, lowered = 0, shortened = 0;
};

/// True time is a Duration since the run began; nobody in the run can see it.
class World {
 public:
  World(std::uint64_t seed, Happened& happened) : random_(seed), happened_(happened) {
    const std::size_t keys = 1 + random_.below(3);
    for (std::size_t i = 0; i < keys; ++i) {
      Row& row = table_.add("CONN#" + std::to_string(i));
      if (random_.below(2) == 0) row.attributes.erase(row.attributes.find(attribute::expires_at));
      keys_.push_back(row.key);
    }
    reliable_ = random_.below(4) == 0;
    // In a tight world the margin covers nothing but the drift, so that the skew alone keeps takeovers apart.
    tight_ = random_.below(2) == 0;
    const std::size_t workers = 2 + random_.below(3);
    for (std::size_t i = 0; i < workers; ++i) hire();
    if (!tight_ && one_in(2)) at(random_.between(0s, lease), [this] { plain_worker(); });
    at(random_.between(0s, 2 * lease), [this] { operate(); });
    if (one_in(2)) at(random_.between(0s, 3 * lease), [this] { meddle(); });
  }

  void run(Duration length) {
    while (!events_.empty() && events_.top().time <= length && !::testing::Test::HasFailure()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      check();  // just before, with everything that is believed at this time
      event.work();
      check();
    }
    for (auto& worker : workers_) count(*worker);
  }

 private:
  struct Event {
    Duration time;
    std::uint64_t order;
    std::function<void()> work;
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
  };
  struct Held {
    bool running = false;  // between start and its end; effects are allowed while until lies ahead
    bool told_lost = false;
    bool ending = false;
    Epoch epoch;
    Instant until{};
    std::int64_t seq = 0;
  };
  struct Worker {
    std::string name;
    double rate = 1;  // of its boot clock
    Duration boot{};  // its boot clock when the run began
    Duration wall_off{};
    bool alive = true;
    Duration paused_until{};
    std::unique_ptr<Random> random;
    std::unique_ptr<Keeper> keeper;
    std::map<Slot, Held> held;
    std::map<std::string, Row> seen;  // an old look at the rows: hints may be stale
    std::vector<std::function<void()>> waiting;
    std::uint64_t pump = 0;
  };

  void at(Duration time, std::function<void()> work) { events_.push({time, ++order_, std::move(work)}); }
  void in(Duration delay, std::function<void()> work) { at(now_ + delay, std::move(work)); }
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  bool trouble(std::uint64_t n) { return !reliable_ && one_in(n); }

  // ---- Clocks ----

  Instant instant(const Worker& worker, Duration time) const {
    return Instant(worker.boot + Duration(std::llround(static_cast<double>(time.count()) * worker.rate)));
  }
  Duration true_time(const Worker& worker, Instant instant) const {
    const Duration since = instant.time_since_epoch() - worker.boot;
    return Duration(static_cast<Duration::rep>(std::ceil(static_cast<double>(since.count()) / worker.rate)) + 1);
  }
  static WallTime wall_at(Duration time) {
    return WallTime(milliseconds(1'700'000'000'000) + std::chrono::floor<milliseconds>(time));
  }
  Now now(const Worker& worker) const { return {instant(worker, now_), wall_at(now_ + worker.wall_off)}; }

  // ---- Workers ----

  void hire() {
    auto owned = std::make_unique<Worker>();
    Worker& worker = *owned;
    worker.name = "w" + std::to_string(++hired_);
    const double drift = tight_ ? 0.001 : 0.02;
    worker.rate = 1 - drift + 2 * drift * random_.unit();
    worker.boot = random_.between(0s, 1000s);
    worker.random = std::make_unique<Random>(random_.next());
    LeaseOptions options{.lease = lease};
    if (tight_) options.margin = lease / 500;
    const LeaseTerms terms = *make_terms(options);
    worker.keeper =
        std::make_unique<Keeper>(WorkerId(worker.name), terms, KeeperLimits{8, 1 + random_.below(4)}, *worker.random);
    workers_.push_back(std::move(owned));
    set_clock(worker);
    look(worker);
    in(random_.between(1s, 60s), [this, &worker] { strike(worker); });
  }

  void set_clock(Worker& worker) {  // any two readings differ by less than the skew
    worker.wall_off = random_.between(-skew / 2 + 2ms, skew / 2 - 2ms);
  }

  /// Pauses, clock steps, crashes, drains.
  void strike(Worker& worker) {
    if (!worker.alive) return;
    switch (random_.below(8)) {
      case 0:
        worker.alive = false;
        count(worker);
        in(random_.between(0s, 5s), [this] { hire(); });
        return;
      case 1:
        enter(worker, [this, &worker] { worker.keeper->drain(now(worker)); });
        in(20s, [this, &worker] {
          if (std::exchange(worker.alive, false)) hire();
        });
        return;
      case 2:
      case 3:
        worker.paused_until = now_ + random_.between(10ms, one_in(3) ? 3 * lease : lease / 2);
        at(worker.paused_until, [this, &worker] { enter(worker, [] {}); });
        break;
      default:
        set_clock(worker);
    }
    in(random_.between(1s, 40s), [this, &worker] { strike(worker); });
  }

  /// Runs something on the worker's thread: now, or when its pause is over, or never.
  void enter(Worker& worker, std::function<void()> work) {
    if (!worker.alive) return;
    worker.waiting.push_back(std::move(work));
    if (now_ < worker.paused_until) return;
    const auto waiting = std::exchange(worker.waiting, {});
    for (const auto& task : waiting) task();
    pump(worker);
  }

  void look(Worker& worker) {
    if (!worker.alive) return;
    enter(worker, [this, &worker] {
      for (const std::string& key : keys_) {
        const Row* row = table_.find(key);
        // Sometimes what was seen at an earlier look: the index lags behind.
        if (!one_in(3) || !worker.seen.contains(key)) worker.seen[key] = *row;
        if (const auto candidate = candidate_from(worker.seen[key])) worker.keeper->claim(*candidate, now(worker));
      }
    });
    in(random_.between(100ms, 5s), [this, &worker] { look(worker); });
  }

  void pump(Worker& worker) {
    while (const auto action = worker.keeper->poll(now(worker))) act(worker, *action);
    const auto next = worker.keeper->next();
    if (!next) return;
    const std::uint64_t mine = ++worker.pump;
    at(std::max(true_time(worker, *next), now_) + (one_in(4) ? random_.between(0ms, 50ms) : 0ms),
       [this, &worker, mine] {
         if (mine == worker.pump) enter(worker, [] {});
       });
  }

  void act(Worker& worker, const Action& action) {
    Held& held = worker.held[action.slot];
    switch (action.kind) {
      case Action::Kind::write:
        send(worker, action);
        break;
      case Action::Kind::start:
        ASSERT_FALSE(held.running);
        held = Held{true, false, false, action.epoch, action.until, action.last_seq};
        ASSERT_LT(now(worker).instant, action.until) << "started without a belief";
        in(random_.between(0s, 20s), [this, &worker, slot = action.slot, epoch = action.epoch] {
          enter(worker, [this, &worker, slot, epoch] { progress(worker, slot, epoch); });
        });
        break;
      case Action::Kind::extend:
        ASSERT_TRUE(held.running && !held.told_lost);
        ASSERT_GE(action.until, held.until);
        held.until = action.until;
        break;
      case Action::Kind::stop:
        ASSERT_TRUE(held.running && !held.ending && !held.told_lost);
        end_resource(worker, action.slot);
        break;
      case Action::Kind::lost:
        ASSERT_TRUE(held.running && !held.told_lost) << "lost, once, and only what had started";
        held.told_lost = true;
        ++happened_.losses;
        if (!held.ending) end_resource(worker, action.slot);
        break;
      case Action::Kind::gone:
        ASSERT_FALSE(held.running) << "gone before its resource had ended";
        worker.held.erase(action.slot);
        break;
    }
  }

  void progress(Worker& worker, Slot slot, Epoch epoch) {
    const auto found = worker.held.find(slot);
    if (found == worker.held.end()) return;
    Held& held = found->second;
    if (!held.running || held.ending || held.epoch != epoch || now(worker).instant >= held.until) return;
    held.seq += 1 + static_cast<std::int64_t>(random_.below(10));
    worker.keeper->progress(slot, held.seq);
    in(random_.between(0s, 5s), [this, &worker, slot, epoch] {
      enter(worker, [this, &worker, slot, epoch] { progress(worker, slot, epoch); });
    });
  }

  void end_resource(Worker& worker, Slot slot) {
    worker.held[slot].ending = true;
    in(random_.between(0ms, one_in(5) ? 2 * lease : 1s), [this, &worker, slot] {
      enter(worker, [this, &worker, slot] {
        worker.held[slot].running = false;
        worker.keeper->stopped(slot, worker.held[slot].seq, now(worker));
      });
    });
  }

  // ---- The network and the table ----

  void send(Worker& worker, const Action& action) {
    const Update update = render(action.write, worker.keeper->owner());
    const auto answered = std::make_shared<bool>(false);
    const auto reply = [this, &worker, slot = action.slot, id = action.write_id, answered](Outcome outcome,
                                                                                           std::optional<Row> row) {
      enter(worker, [this, &worker, slot, id, outcome, row = std::move(row)] {
        worker.keeper->on_write(slot, id, outcome, row ? &*row : nullptr, now(worker));
      });
      *answered = true;
    };
    // A shell answers once, at its deadline at the latest; here late answers are handed on too, to be ignored.
    at(std::max(now_, true_time(worker, action.deadline)), [answered, reply] {
      if (!*answered) reply(Outcome::unknown, std::nullopt);
    });
    if (!trouble(8)) in(delay(), [this, update, reply] { arrive(update, reply); });
    if (trouble(6)) {
      ++happened_.duplicates;
      in(random_.between(0s, 3 * lease), [this, update, reply] { arrive(update, reply); });
    }
  }

  Duration delay() {
    if (trouble(12)) return random_.between(0s, 2 * lease);
    return random_.between(1ms, trouble(4) ? 2s : 30ms);
  }

  void arrive(const Update& update, const std::function<void(Outcome, std::optional<Row>)>& reply) {
    if (trouble(10)) {
      if (one_in(2)) in(delay(), [reply] { reply(Outcome::throttled, std::nullopt); });
      return;
    }
    const Row before = *table_.find(update.key);
    const auto answer = table_.carry_out(update);
    if (answer.outcome == Outcome::applied) check_change(before, *answer.row);
    if (trouble(8)) return;  // the reply is lost
    const Outcome outcome = trouble(20) ? Outcome::unknown : answer.outcome;
    in(delay(), [reply, outcome, row = answer.row] { reply(outcome, row); });
  }

  /// Knows lease_owner and lease_expires_at_ms only, and no skew: claims what has no owner or has run out by its own
  /// clock, renews what it owns, releases by writing 0, and sometimes leaves its name behind.
  void plain_worker() {
    const std::string& key = keys_[random_.below(keys_.size())];
    Row& row = table_.row(key);
    const WallTime wall = wall_at(now_ + plain_off_);
    const Value expiry(std::int64_t{(wall + milliseconds(10'000)).time_since_epoch().count()});
    const bool mine = row.text(attribute::owner) == "plain";
    const bool free =
        row.text(attribute::owner).empty() || row.number(attribute::expires_at) <= wall.time_since_epoch().count();
    const Row before = row;
    if (mine && one_in(3)) {
      row.attributes[std::string(attribute::expires_at)] = Value(std::int64_t{0});
      if (one_in(2)) row.attributes.erase(row.attributes.find(attribute::owner));
      plain_until_.erase(key);
    } else if (mine || (free && one_in(2) && row.text(attribute::desired_state) == state::started)) {
      row.attributes[std::string(attribute::owner)] = Value("plain");
      row.attributes[std::string(attribute::expires_at)] = expiry;
      plain_until_[key] = now_ + lease - lease / 10;
      ++happened_.plain_claims;
    }
    check_change(before, row);
    plain_off_ = random_.between(-skew / 2 + 2ms, skew / 2 - 2ms);
    in(random_.between(500ms, one_in(4) ? 2 * lease : 4s), [this] { plain_worker(); });
  }

  void operate() {  // the operator stops and starts
    Row& row = table_.row(keys_[random_.below(keys_.size())]);
    const bool running = row.text(attribute::desired_state) == state::started;
    row.attributes[std::string(attribute::desired_state)] = Value(running ? state::stopped : state::started);
    in(running ? random_.between(1s, lease) : random_.between(lease, 6 * lease), [this] { operate(); });
  }

  /// Somebody moves a lease's expiry ahead, by little or by much, as a clock that is wrong for a moment would; and
  /// later shortens it to what is usual where it still is, as `conn release` does.
  void meddle() {
    const std::string& key = keys_[random_.below(keys_.size())];
    Row& row = table_.row(key);
    if (!row.text(attribute::owner).empty() && row.number(attribute::expires_at) != 0) {
      row.attributes[std::string(attribute::expires_at)] =
          Value(row.number(attribute::expires_at) + random_.between(1ms, one_in(2) ? 1s : 1h) / 1ms);
      ++happened_.moved_ahead;
    }
    in(random_.between(1s, 3 * lease), [this, key] {
      Row& later = table_.row(key);
      const WallTime usual = wall_at(now_ + random_.between(-skew / 2 + 2ms, skew / 2 - 2ms)) + 10'000ms;
      if (later.text(attribute::owner).empty() ||
          later.number(attribute::expires_at) <= usual.time_since_epoch().count()) {
        return;
      }
      later.attributes[std::string(attribute::expires_at)] = Value(std::int64_t{usual.time_since_epoch().count()});
      ++happened_.shortened;
    });
    in(random_.between(1s, 2 * lease), [this] { meddle(); });
  }

  // ---- The rules ----

  void check_change(const Row& before, const Row& after) {
    const std::int64_t epoch = after.number(attribute::epoch);
    ASSERT_GE(epoch, before.number(attribute::epoch)) << "S3";
    ASSERT_GE(after.number(attribute::last_seq), before.number(attribute::last_seq)) << "S9";
    const bool same_holder =
        epoch == before.number(attribute::epoch) && after.text(attribute::owner) == before.text(attribute::owner);
    if (same_holder && after.number(attribute::expires_at) < before.number(attribute::expires_at))
      ++happened_.lowered;
    if (epoch > before.number(attribute::epoch)) {
      if (epoch > 1) ++happened_.takeovers;
      ASSERT_EQ(before.text(attribute::desired_state), state::started) << "S8";
      const auto [known, fresh] = owners_.emplace(std::pair(after.key, epoch), after.text(attribute::owner));
      ASSERT_TRUE(fresh) << "S3: epoch " << epoch << " of " << after.key << " had " << known->second;
    }
  }

  void check() {
    ++happened_.checks;
    for (const std::string& key : keys_) {
      const Row& row = *table_.find(key);
      std::vector<std::string> believers;
      if (const auto plain = plain_until_.find(key); plain != plain_until_.end() && now_ < plain->second) {
        believers.emplace_back("plain");
      }
      for (const auto& worker : workers_) {
        if (!worker->alive) continue;
        for (const auto& [slot, held] : worker->held) {
          if (!held.running || held.told_lost || instant(*worker, now_) >= held.until) continue;
          if (worker->keeper->key(slot) != key) continue;
          believers.push_back(worker->name);
          check_belief(*worker, held, row);
        }
      }
      ASSERT_LE(believers.size(), 1U) << "S1: " << key << " is believed to be held by " << believers[0] << " and "
                                      << believers[1] << " at " << now_.count() / 1'000'000 << " ms";
    }
  }

  /// S4, stronger than S1: the row says what the holder believes, and no clock that is right enough may call the
  /// lease over before the belief is. Where the margin is above the skew, as it is by default, that includes plain
  /// workers, who wait for no skew.
  void check_belief(const Worker& worker, const Held& held, const Row& row) {
    ASSERT_EQ(row.text(attribute::owner), worker.name) << "S4: believes in what the row does not say";
    ASSERT_EQ(row.number(attribute::epoch), held.epoch.value);
    const WallTime expiry{milliseconds(row.number(attribute::expires_at))};
    const Duration end = true_time(worker, held.until);
    ASSERT_GT(expiry, wall_at(tight_ ? end - skew / 2 : end + skew / 2)) << "S4: the belief outlasts the lease";
  }

  void count(const Worker& worker) {
    happened_.settled += worker.keeper->counters().settled;
    happened_.late += worker.keeper->counters().claims_late;
  }

  Random random_;
  Happened& happened_;
  bool reliable_ = false;
  bool tight_ = false;
  Duration now_{};
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::size_t hired_ = 0;
  test::LeaseTable table_;
  std::vector<std::string> keys_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::pair<std::string, std::int64_t>, std::string> owners_;
  std::map<std::string, Duration> plain_until_;
  Duration plain_off_{};
};

constexpr std::uint64_t seeds = 1500;

TEST(LeaseModel, one_believer_and_rising_epochs_whatever_network_clocks_and_processes_do) {
  Happened happened;
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed, happened);
    world.run(150s);
  }
  // A run in which nothing goes wrong proves nothing.
  EXPECT_GT(happened.takeovers, 1000U);
  EXPECT_GT(happened.losses, 1000U);
  EXPECT_GT(happened.settled, 100U);
  EXPECT_GT(happened.late, 5U);
  EXPECT_GT(happened.duplicates, 1000U);
  EXPECT_GT(happened.plain_claims, 500U);
  EXPECT_GT(happened.moved_ahead, 1000U);
  EXPECT_GT(happened.lowered, 1000U);
  EXPECT_GT(happened.shortened, 100U);
  RecordProperty("checks", std::to_string(happened.checks));
}

}  // namespace
}  // namespace holdfast
