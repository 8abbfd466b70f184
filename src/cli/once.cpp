#include <array>
#include <fstream>
#include <memory>

#include "cli/coordination.hpp"
#include "cli/once_record.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "coord/fingerprint.hpp"

namespace holdfast::cli {

namespace {

struct OnceSettings {
  RightSettings right;
  std::string key, input, abandoned = "rerun", reconcile;
  std::vector<std::string> command;
  Duration retention = std::chrono::hours(24);
  bool record_failures = false;
};

constexpr std::string_view exit_codes =
    "  the command's own, now or when it was run (128 + n if signal n ended it)\n"
    "  75   busy: somebody else is running it; or it was abandoned, and is held for a person\n"
    "  76   the right was lost while the command ran: its result was not recorded\n"
    "  69   the store cannot be reached\n"
    "  64   asked for wrongly: the command line, a variable, the config file; or the key was used with another "
    "input\n"
    "  1    something else failed: the command could not be started, its output does not fit";

Result<OnceOptions::Abandoned> abandoned_from(const std::string& text) {
  if (text == "rerun") return OnceOptions::Abandoned::rerun;
  if (text == "hold") return OnceOptions::Abandoned::hold;
  if (text == "reconcile") return OnceOptions::Abandoned::reconcile;
  return fail(Code::usage, "--abandoned: '" + text + "' is none of rerun, hold, reconcile");
}

Result<std::string> content_of(const std::string& path) {
  constexpr std::size_t most = 64 << 20;  // a device may have no end
  std::ifstream file(path, std::ios::binary);
  std::string content;
  std::array<char, 65536> piece{};
  while (file.read(piece.data(), piece.size()), file.gcount() > 0) {
    content.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (content.size() > most) return fail(Code::usage, "--input: " + path + " has more than 64 MiB");
  }
  if (!file.is_open() || file.bad()) return fail(Code::usage, "--input: cannot read " + path);
  return content;
}

constexpr std::string_view for_a_person =
    "find out what became of it, then 'holdfast task release' it to have it run again";

/// What is done with a turn: the command, or first what finds out about the one that was abandoned.
class Turn {
 public:
  Turn(Coordination& here, const OnceSettings& settings, const coord::TaskOptions& options, coord::OnLost on_lost,
       const coord::Coordinator::Turn& turn, const std::optional<Ended<std::optional<OnceResult>>>& finished)
      : here_(here), settings_(settings), options_(options), on_lost_(on_lost), turn_(turn), finished_(finished) {}

  /// Runs the command, records what it printed and how it ended, then prints it: nobody sees a result that others
  /// would not be shown.
  Result<int> run() {
    const auto ended = run(settings_.command, turn_.was_abandoned);
    if (!ended || ended->code) return ended.map([](const Ran& ran) { return *ran.code; });
    const OnceRecord& record = ended->record;
    const bool is_result = record.exit_code == 0 || (settings_.record_failures && ended->signal == 0);
    if (is_result) return finish(record);
    // An exit code says that it is not done, so that the next caller runs it; a signal says nothing.
    give_back(ended->signal != 0);
    if (const auto told = print(record.output); !told) return tl::unexpected<Error>(told.error());
    return record.exit_code;
  }

  /// The run before this one left no result: a command says what became of it (F22). Only what it says on purpose
  /// counts; one that fails, or cannot be run, has not found out.
  Result<int> reconcile() {
    std::vector<std::string> words{settings_.reconcile};
    words.insert(words.end(), settings_.command.begin(), settings_.command.end());
    const auto ended = run(words, true);
    if (!ended || ended->code) return ended.map([](const Ran& ran) { return *ran.code; });
    if (ended->record.exit_code == says_done) return finish(ended->record);
    if (ended->record.exit_code == says_rerun) return run();
    give_back(true);
    complain(settings_.key + " was begun and left no result, and " + settings_.reconcile + " ended with " +
             std::to_string(ended->record.exit_code) + ": " + std::string(for_a_person));
    return static_cast<int>(CoordExit::busy);
  }

 private:
  static constexpr int says_done = 0;
  static constexpr int says_rerun = 10;

  struct Ran {
    OnceRecord record;
    int signal = 0;
    std::optional<int> code;  // it came to nothing: what to end with
  };

  /// `is_open`: where it could not even be started, the question what became of the run before is still open.
  Result<Ran> run(const std::vector<std::string>& words, bool is_open) {
    auto output = CapturedOutput::open();
    if (!output) return tl::unexpected<Error>(output.error());
    runtime::SpawnOptions command;
    command.arguments = words;
    command.environment = right_environment(settings_.key, *turn_.held);
    command.inherit_input = true;
    command.output = runtime::SpawnOptions::Output::file;
    command.output_file = output->path();
    const CommandEnd end = here_.run_command(turn_.held, std::move(command), options_, on_lost_);
    if (end.not_started) {
      give_back(is_open);
      return Ran{{}, 0, complain_of_start(*end.not_started)};
    }
    if (end.ending.was_lost) {
      give_back(true);
      complain("the right to " + settings_.key + " was lost: the command was ended");
      return Ran{{}, 0, static_cast<int>(CoordExit::lost)};
    }
    auto printed = output->content();
    if (!printed) {
      give_back(true);
      return tl::unexpected<Error>(printed.error());
    }
    return Ran{{end.ending.exit.code, *std::move(printed)}, end.ending.exit.signal, std::nullopt};
  }

  /// Who cannot say how far the command came leaves that to whoever is next, and to his --abandoned (F22).
  void give_back(bool has_begun) {
    has_begun ? turn_.held->leave() : turn_.held->release({});
    (void)here_.run_until([&] { return finished_.has_value(); });
  }

  Result<int> finish(const OnceRecord& record) {
    const auto fits = here_.coordinator().finish(
        turn_, {record.exit_code == 0, to_content(record), here_.session().wall()}, settings_.retention);
    if (!fits) {
      give_back(true);
      complain(fits.error().detail);
      return static_cast<int>(fits.error().code == Code::unavailable ? CoordExit::lost : CoordExit::failed);
    }
    if (const auto signal = here_.run_until([&] { return finished_.has_value(); })) return 128 + *signal;
    if (!*finished_) return complain_of(finished_->error());
    if (const auto told = print(record.output); !told) return tl::unexpected<Error>(told.error());
    return record.exit_code;
  }

  Coordination& here_;
  const OnceSettings& settings_;
  const coord::TaskOptions& options_;
  const coord::OnLost on_lost_;
  const coord::Coordinator::Turn& turn_;
  const std::optional<Ended<std::optional<OnceResult>>>& finished_;
};

Result<int> replay(const OnceResult& result) {
  const auto record = record_from(result.content);
  if (!record) return tl::unexpected<Error>(record.error());
  if (const auto told = print(record->output); !told) return tl::unexpected<Error>(told.error());
  return record->exit_code;
}

Result<int> once(Coordination& here, const OnceSettings& settings, OnceOptions what,
                 const coord::TaskOptions& options, coord::OnLost on_lost) {
  std::optional<Ended<coord::Coordinator::Turn>> turn;
  std::optional<Ended<std::optional<OnceResult>>> finished;
  coord::Coordinator::OnceEvents events;
  events.turn = [&](auto got) {
    turn = std::move(got);
    here.wake();
  };
  events.lost = [&](LossReason) { here.lost(); };
  events.finished = [&](auto got) {
    finished = std::move(got);
    here.wake();
  };
  here.coordinator().once(std::move(what), options, std::move(events));
  if (const auto signal = here.run_until([&] { return turn.has_value(); })) return 128 + *signal;
  if (!*turn) return complain_of(turn->error());
  if ((*turn)->done) return replay((*turn)->done->result);
  if ((*turn)->hold) {
    complain(settings.key + " was begun by " + (*turn)->hold->owner +
             ", which left no result: " + std::string(for_a_person));
    return static_cast<int>(CoordExit::busy);
  }
  Turn ours(here, settings, options, on_lost, **turn, finished);
  const bool asks = (*turn)->was_abandoned && !settings.reconcile.empty();
  return asks ? ours.reconcile() : ours.run();
}

Result<int> once(const OnceSettings& settings) {
  const auto options = task_options(settings.right);
  if (!options) return tl::unexpected<Error>(options.error());
  const auto on_lost = on_lost_from(settings.right.on_lost);
  if (!on_lost) return tl::unexpected<Error>(on_lost.error());
  const auto abandoned = abandoned_from(settings.abandoned);
  if (!abandoned) return tl::unexpected<Error>(abandoned.error());
  if ((*abandoned == OnceOptions::Abandoned::reconcile) != !settings.reconcile.empty()) {
    return fail(Code::usage, "--abandoned reconcile needs --reconcile FILE, and nothing else does");
  }
  OnceOptions what;
  what.key = settings.key;
  what.abandoned = *abandoned;
  if (!settings.input.empty()) {
    const auto input = content_of(settings.input);
    if (!input) return tl::unexpected<Error>(input.error());
    what.fingerprint = coord::fingerprint_of(*input);
  }
  return coordinate(settings.right.store, settings.right.store_patience,
                    [&](Coordination& here) { return once(here, settings, what, *options, *on_lost); });
}

}  // namespace

void add_once(Setup setup) {
  const auto settings = std::make_shared<OnceSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "once",
       .description = "run a command once for a key; afterwards print what it printed, with its exit code",
       .example = "once invoice-17 --input order.json --wait 1m -- ./charge.sh order.json\n"
                  "once invoice-17 --abandoned reconcile --reconcile ./was-it-charged.sh -- ./charge.sh order.json",
       .exit_codes = std::string(exit_codes)},
      static_cast<int>(CoordExit::usage), [settings] { return once(*settings); });
  add_argument(app, "KEY", settings->key, "what is to happen once");
  add_arguments(app, "CMD", settings->command, "the command and its arguments, after --; no shell in between")
      .required();
  add_text(
      app, "--input", "FILE", settings->input,
      "what the command is about: the same key with another input is refused; JSON counts as equal however written");
  add_text(app, "--abandoned", "POLICY", settings->abandoned,
           "what to do where somebody began and left no result: rerun it, hold until a person decides, or reconcile");
  add_text(
      app, "--reconcile", "FILE", settings->reconcile,
      "for --abandoned reconcile: a command, run with CMD and its arguments for arguments, that says by its exit "
      "code what became of it: 0 it was done, and this is what it printed; 10 run it; other: hold");
  add_duration(app, "--retention", settings->retention, "how long the result is kept, at least");
  add_switch(app, "--record-failures", settings->record_failures,
             "an exit code other than 0 is a result too; otherwise the next caller runs it again");
  add_right(app, settings->right, "whoever is running it, to be given that result");
}

}  // namespace holdfast::cli
