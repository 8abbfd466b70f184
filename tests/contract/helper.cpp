#include "helper.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>

#include "asking.hpp"
#include "runtime/clock.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace holdfast::test {

namespace {

using Arguments = std::vector<std::string>;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::unique_ptr<Store> open_or_die(store::SqliteOptions options, Loop& loop) {
  auto store = store::make_sqlite_store(std::move(options), loop);
  if (!store) {
    say(store.error().detail);
    std::_Exit(3);
  }
  return std::move(*store);
}

/// PATH TIMES: adds 1 to a counter so many times, all of them at once in flight; prints how many applied.
int count(const Arguments& arguments) {
  runtime::AsioLoop loop(runtime::random_seed());
  Asking store(open_or_die({.path = arguments.at(0)}, loop), loop);
  const int times = std::stoi(arguments.at(1));
  int applied = 0;
  int answered = 0;
  for (int i = 0; i < times; ++i) {
    store->update({"counter", {Change::add("x", 1)}, {}}, store.deadline(3 * Asking::patience), [&](RowReply reply) {
      ++answered;
      if (reply.ok()) ++applied;
    });
  }
  const bool all = run_until(
      loop, [&] { return answered == times; }, 4 * Asking::patience);
  say(std::to_string(applied));
  return all ? 0 : 1;
}

/// PATH ROUNDS: takes the next epoch over and over, one request at a time; prints how often it won.
int race(const Arguments& arguments) {
  runtime::AsioLoop loop(runtime::random_seed());
  Asking store(open_or_die({.path = arguments.at(0)}, loop), loop);
  int won = 0;
  for (int round = 0; round < std::stoi(arguments.at(1)); ++round) {
    const RowReply seen = store.get("race");
    const std::int64_t epoch = seen.value ? seen.value->number("epoch") : 0;
    const RowReply reply =
        store.update({"race", {Change::set("epoch", epoch + 1)}, Condition::equals("epoch", epoch)});
    if (reply.outcome != Outcome::applied && reply.outcome != Outcome::conflict) {
      say(reply.error.detail);
      return 1;
    }
    if (reply.ok()) ++won;
  }
  say(std::to_string(won));
  return 0;
}

/// PATH MOMENT: writes two rows in one transaction and stays at that moment, until it is killed.
int hang(const Arguments& arguments) {
  using Moment = store::SqliteOptions::Moment;
  const std::map<std::string, Moment> moments{
      {"begun", Moment::begun}, {"before_commit", Moment::before_commit}, {"after_commit", Moment::after_commit}};
  const Moment where = moments.at(arguments.at(1));
  const auto stay = [where](Moment moment) {
    if (moment != where) return;
    say("there");
    while (true) ::pause();
  };
  runtime::AsioLoop loop(1);
  Asking store(open_or_die({.path = arguments.at(0), .at_moment = stay}, loop), loop);
  (void)store.transact({{"a", {Change::set("x", 1)}, {}}, {"b", {Change::set("x", 1)}, {}}});
  return 1;
}

/// PATH: as a user who may not write the file: prints what opening, reading or writing comes to.
int write_as_nobody(const Arguments& arguments) {
  constexpr uid_t nobody = 65534;
  if (::getuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) return 2;
  runtime::AsioLoop loop(1);
  auto opened = store::make_sqlite_store({.path = arguments.at(0)}, loop);
  if (!opened) {
    say("open: " + opened.error().detail);
    return 0;
  }
  Asking store(std::move(*opened), loop);
  const RowReply reply = store.put("k", {{"x", 1}});
  say(std::string(to_string(reply.outcome)) + ": " + reply.error.detail);
  return 0;
}

/// PATH BYTES: writes under a limit of the file size until it fails, lifts the limit, writes again.
int fill(const Arguments& arguments) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = std::stoul(arguments.at(1));
  ::setrlimit(RLIMIT_FSIZE, &limit);
  runtime::AsioLoop loop(1);
  Asking store(open_or_die({.path = arguments.at(0)}, loop), loop);
  RowReply reply;
  int written = 0;
  do {
    reply = store.put("row-" + std::to_string(written), {{"x", std::string(10'000, 'x')}});
    written += reply.ok() ? 1 : 0;
  } while (reply.ok() && written < 1000);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const bool works_again = store.put("row-" + std::to_string(written), {{"x", 1}}).ok();
  say(std::to_string(written) + " " + std::string(to_string(reply.outcome)) + " " +
      (works_again ? "works again" : "still fails") + ": " + reply.error.detail);
  return 0;
}

}  // namespace

int help(const std::vector<std::string>& arguments) {
  const std::map<std::string, std::function<int(const Arguments&)>> all{
      {"count", count}, {"race", race}, {"hang", hang}, {"write_as_nobody", write_as_nobody}, {"fill", fill}};
  return all.at(arguments.at(0))({arguments.begin() + 1, arguments.end()});
}

std::vector<std::string> helper_command(std::vector<std::string> arguments) {
  std::vector<std::string> command{"/proc/self/exe", "--store-helper"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace holdfast::test
