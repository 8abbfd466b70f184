#include "cli/once_run.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "cli/command_line.hpp"
#include "cli/once_record.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "core/coord/limits.hpp"

namespace holdfast::cli {

namespace {

using How = OnceEnd::How;

/// As a shell reads it: one word.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string for_a_person(const std::string& key, Epoch epoch) {
  return "find out what became of it. If it was done, record that: holdfast once --abandoned reconcile --reconcile "
         "true -- " +
         quoted(key) + " CMD. If not, have it run again: holdfast task release --once --epoch " +
         std::to_string(epoch.value) + " -- " + quoted(key);
}

OnceEnd end(How how, std::string why) {
  return {.how = how, .why = std::move(why)};
}

OnceEnd end(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::unavailable:
    case Failure::Kind::unknown:
      return end(How::unavailable, failure.error.detail);
    case Failure::Kind::busy:
      return end(How::busy, failure.error.detail);
    case Failure::Kind::mismatch:
      return end(How::mismatch, failure.error.detail);
    case Failure::Kind::refused:
    case Failure::Kind::rejected:
      break;
  }
  return end(How::failed, failure.error.detail);
}

class Running {
 public:
  Running(Coordination& here, const OnceJob& job) : here_(here), job_(job) {}
  ~Running() { told_->is_over = true; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  OnceEnd run();

 private:
  /// What the coordinator says. It may say more when nobody waits for it any more.
  struct Told {
    std::optional<Ended<coord::Coordinator::Turn>> turn;
    std::optional<Ended<std::optional<OnceResult>>> finished, recorded_late;
    std::optional<LossReason> lost;
    bool is_wanted = true;  // a turn
    bool is_over = false;
  };

  struct Ran {
    OnceRecord record;
    int signal = 0;
  };

  void begin();
  void withdraw(bool was_interrupted);
  static void give_back_unbegun(const coord::Coordinator::Turn& turn);
  OnceEnd run_command();
  OnceEnd reconcile();
  /// Or why there is nothing to go by; the right is given back then.
  tl::expected<Ran, OnceEnd> run_words(const std::vector<std::string>& words);
  OnceEnd record(OnceRecord record);
  /// It ran to its end, and that may not be on record (or surely is not), for this reason.
  [[nodiscard]] OnceEnd unrecorded(OnceRecord record, const std::string& why, How how = How::unrecorded) const;
  /// What the same call does if it is not.
  [[nodiscard]] std::string what_a_repeat_does() const;
  void give_back(bool has_begun);
  /// Nothing: it is there. Otherwise how waiting for it ended. What is being written is not broken off by a first
  /// signal.
  enum class Waits { for_a_turn, for_a_write };
  std::optional<OnceEnd> wait_for(Waits waits, const std::function<bool()>& is_there);

  Coordination& here_;
  const OnceJob& job_;
  const std::shared_ptr<Told> told_ = std::make_shared<Told>();
};

std::optional<OnceEnd> Running::wait_for(Waits waits, const std::function<bool()>& is_there) {
  runtime::AsioLoop& loop = here_.session().loop();
  TimerId timer = 0;
  bool gave_up = false;
  if (job_.give_up_at) {
    timer = loop.call_at(*job_.give_up_at, [&] {
      gave_up = true;
      here_.wake();
    });
  }
  const auto is_over = [&] { return is_there() || gave_up; };
  const auto signal =
      waits == Waits::for_a_turn ? here_.run_until(is_over) : here_.settle(job_.options.patience, is_over);
  if (timer != 0) loop.cancel(timer);
  if (is_there()) return std::nullopt;
  if (signal) return OnceEnd{.how = How::interrupted, .exit_code = 128 + *signal};
  return end(How::unavailable, "the store did not answer in time");
}

void Running::begin() {
  coord::Coordinator::OnceEvents events;
  events.is_wanted = [told = told_] { return told->is_wanted; };
  events.turn = [this, told = told_](auto got) {
    if (got && got->held && !told->is_wanted) give_back_unbegun(*got);
    if (told->is_over) return;
    told->turn = std::move(got);
    here_.wake();
  };
  events.lost = [this, told = told_](LossReason reason) {
    if (told->is_over) return;
    told->lost = reason;
    here_.lost();
  };
  events.finished = [this, told = told_](auto got) {
    if (told->is_over) return;
    told->finished = std::move(got);
    here_.wake();
  };
  here_.coordinator().once(job_.what, job_.options, std::move(events));
}

/// Nobody waits for a turn any more. Where its claim is on its way, the key is not to be left as if somebody had
/// begun.
void Running::withdraw(bool was_interrupted) {
  told_->is_wanted = false;
  // Otherwise the loop goes on, and so what comes is seen to.
  if (!was_interrupted) return here_.coordinator().recheck();
  const bool is_known = here_.see_out(job_.options.patience, [&] {
    const auto& turn = told_->turn;
    return turn && (!*turn || !(*turn)->held || told_->finished);
  });
  if (is_known) return;
  complain("the command was not begun, and it is not known whether " + job_.what.key +
           " was given back: where it is told to be held, 'holdfast task show --once' tells by which epoch, and "
           "'holdfast task release --once' gives it back");
}

/// What became of the run before is as open as it was.
void Running::give_back_unbegun(const coord::Coordinator::Turn& turn) {
  turn.was_abandoned ? turn.held->leave() : turn.held->release({});
}

OnceEnd Running::run() {
  begin();
  if (auto waited = wait_for(Waits::for_a_turn, [&] { return told_->turn.has_value(); })) {
    withdraw(waited->how == How::interrupted);
    return *std::move(waited);
  }
  const auto& turn = *told_->turn;
  if (!turn) return end(turn.error());
  if (turn->done) {
    const OnceResult& result = turn->done->result;
    auto record = record_from(result.content);
    // Of another kind of caller, over HTTP or in C++: he was given his content, and whether it succeeded.
    if (!record) record = OnceRecord{result.succeeded ? 0 : 1, result.content};
    return {.exit_code = record->exit_code, .output = std::move(record->output), .is_replay = true};
  }
  if (turn->hold) {
    return end(How::held, job_.what.key + " was begun by " + turn->hold->owner +
                              ", which left no result: " + for_a_person(job_.what.key, turn->hold->epoch));
  }
  return turn->was_abandoned && !job_.reconcile.empty() ? reconcile() : run_command();
}

/// Who cannot say how far the command came leaves that to whoever is next, and to his policy for what was abandoned
/// (F22).
void Running::give_back(bool has_begun) {
  const auto& held = (*told_->turn)->held;
  has_begun ? held->leave() : held->release({});
  (void)wait_for(Waits::for_a_write, [&] { return told_->finished.has_value(); });
  const bool is_known =
      told_->finished && (*told_->finished || told_->finished->error().kind != Failure::Kind::unknown);
  if (!is_known) complain(not_known_to_be_back(job_.what.key));
}

OnceEnd Running::run_command() {
  auto ran = run_words(job_.command.arguments);
  if (!ran) return std::move(ran.error());
  const bool was_killed = ran->signal != 0;
  if (ran->record.exit_code == 0 || (job_.records_failures && !was_killed)) return record(ran->record);
  // An exit code says that it is not done, so that the next caller runs it; a signal says nothing.
  give_back(was_killed);
  if (was_killed && job_.what.abandoned == OnceOptions::Abandoned::hold) {
    complain("signal " + std::to_string(ran->signal) + " ended the command, so " + job_.what.key +
             " is held for a person: " + for_a_person(job_.what.key, (*told_->turn)->held->epoch()));
  }
  return {.exit_code = ran->record.exit_code, .signal = ran->signal, .output = std::move(ran->record.output)};
}

/// The run before this one left no result: a command says what became of it (F22). Only what it says on purpose
/// counts; one that fails, or cannot be run, has not found out.
OnceEnd Running::reconcile() {
  constexpr int says_done = 0;
  constexpr int says_rerun = 10;
  std::vector<std::string> words{job_.reconcile};
  words.insert(words.end(), job_.command.arguments.begin(), job_.command.arguments.end());
  auto ran = run_words(words);
  if (!ran) return std::move(ran.error());
  if (ran->record.exit_code == says_done) return record(ran->record);
  if (ran->record.exit_code == says_rerun) return run_command();
  give_back(true);
  return end(How::held, job_.what.key + " was begun and left no result, and " + job_.reconcile + " ended with " +
                            std::to_string(ran->record.exit_code) + ": " +
                            for_a_person(job_.what.key, (*told_->turn)->held->epoch()));
}

tl::expected<Running::Ran, OnceEnd> Running::run_words(const std::vector<std::string>& words) {
  const auto& turn = **told_->turn;
  const auto not_begun = [&](How how, std::string why) {
    give_back(turn.was_abandoned);  // what became of the run before is still open then
    return tl::unexpected(end(how, std::move(why)));
  };
  if (job_.limit && here_.session().instant() >= job_.limit->end_by - job_.limit->notice) {
    return not_begun(How::late, "there was no time left to run the command");
  }
  auto output = CapturedOutput::open();
  if (!output) return not_begun(How::not_started, output.error().detail);
  runtime::SpawnOptions command = job_.command;
  command.arguments = words;
  for (auto& variable : right_environment(job_.what.key, *turn.held)) {
    command.environment.push_back(std::move(variable));
  }
  command.output = runtime::SpawnOptions::Output::file;
  command.output_file = output->path();
  runtime::AsioLoop& loop = here_.session().loop();
  TimerId timer = 0;
  const std::function<void()> bound = [&] {
    output->bound();
    timer = loop.call_after(std::chrono::milliseconds(100), bound);
  };
  bound();
  const CommandEnd ended = here_.run_command(turn.held, std::move(command), job_.options, job_.on_lost, job_.limit);
  loop.cancel(timer);
  if (ended.not_started) {
    const bool is_lost = ended.not_started->code == Code::unavailable;
    return not_begun(is_lost ? How::lost : How::not_started, ended.not_started->detail);
  }
  const auto cut_short = [&](How how, std::string why) {
    give_back(true);
    return tl::unexpected(end(how, std::move(why)));
  };
  if (ended.ending.was_late) return cut_short(How::late, "its time was over: the command was ended");
  if (ended.ending.was_lost) {
    return cut_short(How::lost, why_lost(job_.what.key, told_->lost, job_.options.renews));
  }
  const int exit_code = ended.ending.exit.code;
  auto printed = output->content();
  if (!printed) {
    give_back(true);
    const bool is_large = printed.error().code == Code::exhausted;
    return tl::unexpected(
        unrecorded({exit_code, ""}, printed.error().detail, is_large ? How::too_large : How::unrecorded));
  }
  return Ran{{exit_code, *std::move(printed)}, ended.ending.exit.signal};
}

std::string Running::what_a_repeat_does() const {
  switch (job_.what.abandoned) {
    case OnceOptions::Abandoned::hold:
      return "the same call is told the result, or that it is held for a person";
    case OnceOptions::Abandoned::reconcile:
      return "the same call is told the result, or has " + job_.reconcile + " find out";
    case OnceOptions::Abandoned::rerun:
      break;
  }
  return "a repeat runs it again where it is not on record, unless it says --abandoned hold or reconcile";
}

OnceEnd Running::unrecorded(OnceRecord record, const std::string& why, How how) const {
  return {.how = how,
          .why = job_.what.key + " ran to its end, with exit code " + std::to_string(record.exit_code) +
                 ", and its result may not be on record: " + why + "; " + what_a_repeat_does(),
          .exit_code = record.exit_code,
          .output = std::move(record.output)};
}

OnceEnd Running::record(OnceRecord record) {
  std::string content = to_content(record);
  if (content.size() > OnceResult::most) {
    give_back(true);
    const std::string printed = std::to_string(record.output.size());
    return unrecorded(std::move(record),
                      "the command printed " + printed + " bytes, which as JSON writes them are " +
                          std::to_string(content.size()) + ", and at most " + std::to_string(OnceResult::most) +
                          " can be recorded: have it print where its output is",
                      How::too_large);
  }
  const auto& turn = **told_->turn;
  const OnceResult result{record.exit_code == 0, std::move(content), here_.session().wall()};
  const bool is_held = here_.coordinator().finish(turn, result, job_.retention).has_value();
  if (!is_held) {
    // What it came to is recorded all the same while nobody else has had the key (F23).
    here_.coordinator().record(job_.what.key, turn.held->epoch(), result, job_.retention,
                               std::max(job_.options.patience, job_.options.recording),
                               [this, told = told_](Ended<OnceResult> got) {
                                 if (told->is_over) return;
                                 told->recorded_late = std::move(got);
                                 here_.wake();
                               });
  }
  const auto& recorded = is_held ? told_->finished : told_->recorded_late;
  if (const auto waited = wait_for(Waits::for_a_write, [&] { return recorded.has_value(); })) {
    const bool by_signal = waited->how == How::interrupted;
    return unrecorded(std::move(record), by_signal ? "signal " + std::to_string(waited->exit_code - 128) +
                                                         " ended the wait for the store"
                                                   : waited->why);
  }
  if (!*recorded) {
    const Failure& failure = recorded->error();
    if (failure.kind != Failure::Kind::refused) return unrecorded(std::move(record), failure.error.detail);
    return {.how = How::lost,
            .why = "the right to " + job_.what.key + " was lost; the command ran to its end, with exit code " +
                   std::to_string(record.exit_code) + ". " + failure.error.detail,
            .exit_code = record.exit_code,
            .output = std::move(record.output)};
  }
  return {.exit_code = record.exit_code, .output = std::move(record.output)};
}

/// --abandoned and --reconcile
Result<OnceOptions::Abandoned> abandoned_from(const std::string& policy, const std::string& reconcile) {
  const bool reconciles = policy == "reconcile";
  if (reconciles == reconcile.empty()) {
    return fail(Code::usage, "--abandoned reconcile needs --reconcile FILE, and nothing else does");
  }
  if (reconciles) return OnceOptions::Abandoned::reconcile;
  if (policy == "rerun") return OnceOptions::Abandoned::rerun;
  if (policy == "hold") return OnceOptions::Abandoned::hold;
  return fail(Code::usage, "--abandoned: '" + policy + "' is none of rerun, hold, reconcile");
}

}  // namespace

void add_once_options(CLI::App& app, OnceSettings& settings, const std::string& whoever, const std::string& again) {
  add_text(app, "--abandoned", "POLICY", settings.abandoned,
           "what to do where somebody began and left no result: rerun it, hold until a person decides, or reconcile");
  add_text(
      app, "--reconcile", "FILE", settings.reconcile,
      "for --abandoned reconcile: a command, run with CMD and its arguments for arguments, that says by its exit "
      "code what became of it: 0 it was done, and this is what it printed; 10 run it; other: hold");
  add_duration(app, "--retention", settings.retention,
               "how long the result is kept, at least; afterwards CMD runs anew");
  add_switch(app, "--record-failures", settings.record_failures,
             "an exit code other than 0 is a result too; otherwise " + again);
  add_right(app, settings.right, whoever + ", to be given that result");
}

Result<OnceJob> once_job(const OnceSettings& settings) {
  if (const auto fine = check_command(settings.command); !fine) return tl::unexpected<Error>(fine.error());
  const auto options = task_options(settings.right);
  if (!options) return tl::unexpected<Error>(options.error());
  const auto on_lost = on_lost_from(settings.right.on_lost);
  if (!on_lost) return tl::unexpected<Error>(on_lost.error());
  const auto abandoned = abandoned_from(settings.abandoned, settings.reconcile);
  if (!abandoned) return tl::unexpected<Error>(abandoned.error());
  const auto retained = check_within("--retention", settings.retention, coord::remembered);
  if (!retained) return tl::unexpected<Error>(retained.error());
  // Now, and not on the day when it is needed.
  const auto asks = settings.reconcile.empty() ? Result<void>() : runtime::find_program(settings.reconcile);
  if (!asks) return fail(asks.error().code, "--reconcile: " + asks.error().detail);
  OnceJob job{.options = *options, .on_lost = *on_lost, .retention = settings.retention};
  job.records_failures = settings.record_failures;
  job.command.arguments = settings.command;
  job.reconcile = settings.reconcile;
  job.what.abandoned = *abandoned;
  return job;
}

OnceEnd run_once(Coordination& here, const OnceJob& job) {
  return Running(here, job).run();
}

}  // namespace holdfast::cli
