#include "cli/coordination.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "cli/options.hpp"
#include "cli/output.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/environment.hpp"
#include "runtime/units.hpp"

namespace holdfast::cli {

namespace {

/// What a shell or a supervisor sends to a command. Others (SIGWINCH, SIGCHLD, …) are not for it, or cannot be
/// caught.
const std::vector<int> passed_on{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM, SIGTSTP};
/// Of those, what asks a process to end: what is only waiting ends.
bool ends_a_process(int signal) {
  return signal != SIGCONT;
}

}  // namespace

int code_of(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::unavailable:
    case Failure::Kind::unknown:
      return static_cast<int>(CoordExit::unavailable);
    case Failure::Kind::busy:
      return static_cast<int>(CoordExit::busy);
    case Failure::Kind::mismatch:
      return static_cast<int>(CoordExit::usage);
    case Failure::Kind::rejected:
      if (failure.error.code == Code::usage) return static_cast<int>(CoordExit::usage);
      break;
    case Failure::Kind::refused:
      break;
  }
  return static_cast<int>(CoordExit::failed);
}

int complain_of(const Failure& failure) {
  complain(failure.error.detail);
  return code_of(failure);
}

Result<int> complain_of(const Error& error) {
  if (error.code == Code::usage) return tl::unexpected<Error>(error);
  complain(error.detail);
  return static_cast<int>(error.code == Code::unavailable ? CoordExit::unavailable : CoordExit::failed);
}

Result<int> answer(const std::string& text, CoordExit code) {
  return print(text).map([code] { return static_cast<int>(code); });
}

std::string why_lost(const std::string& name, std::optional<LossReason> reason, bool renews) {
  const auto since = [&]() -> std::string {
    switch (reason.value_or(LossReason::belief_expired)) {
      case LossReason::taken_over:
        return "somebody released it by hand or took it over";
      case LossReason::row_missing:
        return "its row is gone";
      case LossReason::belief_expired:
        return renews ? "no renewal of it was confirmed in time: the store was away, or this process stood still"
                      : "its time was over, and it is not renewed";
      case LossReason::stopped:
      case LossReason::drained:
      case LossReason::sink_failed:
        break;
    }
    return std::string(to_string(*reason));
  };
  return "the right to " + name + " was lost: the command was ended, since " + since();
}

std::string not_known_to_be_back(const std::string& name) {
  return "the store did not say whether " + name + " was given back; if not, it runs out by itself";
}

int complain_of_start(const Error& error) {
  complain(error.detail);
  return static_cast<int>(error.code == Code::unavailable ? CoordExit::lost : CoordExit::failed);
}

void add_right(CLI::App& app, RightSettings& settings, const std::string& waits_for) {
  add_duration(app, "--ttl", settings.ttl, "how long the right lasts unless it is renewed");
  add_duration(app, "--skew", settings.skew, "what the clocks of two machines may differ by", "a twentieth of --ttl");
  add_duration(app, "--wait", settings.wait, "how long to wait for " + waits_for, "not at all");
  add_switch(app, "--no-wait", settings.no_wait, "do not wait (as without --wait)");
  add_switch(app, "--no-renew", settings.no_renew, "do not renew it: the command has --ttl and no longer");
  add_text(app, "--on-lost", "ACTION", settings.on_lost,
           "what happens to the command before the right is lost: term (SIGTERM, then SIGKILL), kill, or ignore");
  add_duration(app, "--store-patience", settings.store_patience, "how long to wait for a store that does not answer");
  add_store(app, settings.store);
}

Result<coord::TaskOptions> task_options(const RightSettings& settings) {
  if (settings.no_wait && settings.wait) return fail(Code::usage, "--wait and --no-wait exclude each other");
  constexpr Duration shortest = std::chrono::milliseconds(100);
  constexpr Duration longest = std::chrono::hours(24);
  if (settings.ttl < shortest || settings.ttl > longest) {
    return fail(Code::usage, "--ttl is from 100ms to 24h: whoever comes after one that died waits so long");
  }
  if (settings.skew) {
    if (const auto fine = check_within("--skew", *settings.skew, coord::skewed); !fine) {
      return tl::unexpected<Error>(fine.error());
    }
  }
  auto terms = make_terms({.lease = settings.ttl, .skew = settings.skew});
  if (!terms) {
    const std::string& why = terms.error().detail;
    return fail(terms.error().code, (why.starts_with("skew") ? "--" : "--ttl is the lease: ") + why);
  }
  coord::TaskOptions options;
  options.terms = *terms;
  options.renews = !settings.no_renew;
  options.wait = settings.wait.value_or(Duration::zero());
  options.patience = settings.store_patience;
  options.recording = options.terms.lease;
  return options;
}

Result<coord::OnLost> on_lost_from(const std::string& text) {
  if (text == "term") return coord::OnLost::terminate;
  if (text == "kill") return coord::OnLost::kill;
  if (text == "ignore") return coord::OnLost::ignore;
  return fail(Code::usage, "--on-lost: '" + text + "' is none of term, kill, ignore");
}

std::vector<std::pair<std::string, std::string>> right_environment(const std::string& name, const coord::Held& held) {
  return {{"HOLDFAST_TASK", name},
          {"HOLDFAST_EPOCH", std::to_string(held.epoch().value)},
          {"HOLDFAST_ATTEMPT", std::string(held.row().text(attribute::attempt))},
          {"HOLDFAST_DEADLINE_MS", std::to_string(held.row().number(attribute::expires_at))}};
}

void add_call(CLI::App& app, CallSettings& settings, const std::string& json) {
  add_duration(app, "--store-patience", settings.store_patience, "how long to wait for a store that does not answer");
  add_store(app, settings.store);
  add_switch(app, "--json", settings.json, "print JSON: " + json);
}

std::string call_exit_codes(const std::string& failed) {
  return "  0    fine\n"
         "  69   the store cannot be reached\n"
         "  64   asked for wrongly: the command line, a variable, the config file, an id that was used for something "
         "else\n"
         "  1    " +
         failed;
}

Coordination::Coordination(std::unique_ptr<StoreSession> session) : session_(std::move(session)) {
  coordinator_ =
      std::make_unique<coord::Coordinator>(runtime::host_and_process(), session_->store(), session_->loop());
  signals_ = std::make_unique<runtime::Signals>(
      session_->loop(),
      [this](int signal) {
        if (signal == SIGTSTP) return stop();
        if (child_ && signal == SIGCONT) return child_->go_on();
        if (child_) {
          if (ends_a_process(signal)) told_to_end_ = signal;
          return child_->signal(signal);
        }
        if (ends_a_process(signal)) heard(signal);
      },
      passed_on);
}

Result<std::unique_ptr<Coordination>> Coordination::open(const std::string& store, Duration patience,
                                                         StoreSession::Create create) {
  if (patience <= Duration::zero()) {
    return fail(Code::usage, "--store-patience: in no time no store can be asked");
  }
  auto session = StoreSession::open(store, create, patience);
  if (!session) return tl::unexpected<Error>(session.error());
  return std::unique_ptr<Coordination>(new Coordination(*std::move(session)));
}

Result<int> coordinate(const std::string& store, Duration patience,
                       const std::function<Result<int>(Coordination&)>& action, StoreSession::Create create) {
  const auto here = Coordination::open(store, patience, create);
  // No such file, or no folder for it: who looks, or acts on what must exist, finds its table there or waits for it.
  if (!here && here.error().code == Code::not_found) {
    complain(here.error().detail);
    return static_cast<int>(CoordExit::unavailable);
  }
  Result<int> done = here ? action(**here) : Result<int>(tl::unexpected<Error>(here.error()));
  return done ? done : complain_of(done.error());
}

/// The command first, as hard as we are stopped: nobody may act under a right that nobody renews (S7).
void Coordination::stop() {
  if (child_) child_->signal(SIGSTOP);
  runtime::stop_this_process();
}

void Coordination::wake() {
  session_->loop().stop();
}

Random& Coordination::random() {
  return session_->loop().random();
}

std::optional<int> Coordination::run_until(const std::function<bool()>& is_done) {
  session_->run_until([&] { return is_done() || signal_; });
  return is_done() ? std::nullopt : signal_;
}

void Coordination::heard(int signal) {
  constexpr Duration same_moment = std::chrono::milliseconds(250);
  if (settling_ && !noted_) return note(signal, *settling_);
  if (noted_ && session_->instant() - noted_->at < same_moment) return;
  signal_ = signal;
  wake();
}

void Coordination::note(int signal, Duration patience) {
  const TimerId timer = session_->loop().call_after(patience, [this, signal] {
    signal_ = signal;
    wake();
  });
  noted_ = Noted{signal, session_->instant(), timer};
}

std::optional<int> Coordination::settle(Duration patience, const std::function<bool()>& is_done) {
  settling_ = patience;
  const auto ended_by = run_until(is_done);
  settling_.reset();
  if (const auto noted = std::exchange(noted_, std::nullopt)) session_->loop().cancel(noted->timer);
  return ended_by;
}

bool Coordination::see_out(Duration patience, const std::function<bool()>& is_told) {
  const auto first = std::exchange(signal_, std::nullopt);
  note(first.value(), patience);
  coordinator_->recheck();
  const bool is_known = !settle(patience, is_told);
  signal_ = first;
  return is_known;
}

void Coordination::lost() {
  if (child_) child_->lost();
}

CommandEnd Coordination::run_command(const std::shared_ptr<coord::Held>& held, runtime::SpawnOptions command,
                                     const coord::TaskOptions& options, coord::OnLost on_lost,
                                     const std::optional<TimeLimit>& limit) {
  std::optional<coord::GuardedChild::Ending> ending;
  // Enough for a command to tidy up, and little of the lease.
  const Duration notice = std::min<Duration>(options.terms.lease / 5, std::chrono::seconds(5));
  auto child = coord::GuardedChild::start(std::move(command), held->guard(), on_lost, notice, session_->loop(),
                                          [&](coord::GuardedChild::Ending how) {
                                            ending = how;
                                            wake();
                                          });
  if (!child) return {{}, child.error()};
  child_ = *std::move(child);
  if (limit) child_->end_by(limit->end_by, limit->notice);
  session_->run_until([&] { return ending.has_value(); });
  child_.reset();
  return {*ending, std::nullopt};
}

Result<void> Coordination::start_command(runtime::SpawnOptions command, const TimeLimit& limit,
                                         std::function<void(const coord::GuardedChild::Ending&)> ended) {
  auto child = coord::GuardedChild::start(std::move(command), session_->loop(),
                                          [this, ended = std::move(ended)](const coord::GuardedChild::Ending& how) {
                                            child_.reset();
                                            ended(how);
                                            if (told_to_end_ == 0) return;
                                            signal_ = told_to_end_;
                                            wake();
                                          });
  if (!child) return tl::unexpected<Error>(child.error());
  child_ = *std::move(child);
  child_->end_by(limit.end_by, limit.notice);
  return {};
}

}  // namespace holdfast::cli
