#include <array>
#include <fstream>
#include <memory>

#include "cli/command_line.hpp"
#include "cli/coordination.hpp"
#include "cli/once_run.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "coord/fingerprint.hpp"

namespace holdfast::cli {

namespace {

struct KeySettings {
  OnceSettings once;
  std::string key, input;
};

constexpr std::string_view exit_codes =
    "  the command's own, now or when it was run (128 + n if signal n ended it)\n"
    "  74   the command ran to its end, and its result may not be on record: a repeat may run it again "
    "(--abandoned)\n"
    "  75   busy: somebody else is running it\n"
    "  76   the right was lost while the command ran: its result was not recorded\n"
    "  77   begun before, with no result: held for a person (--abandoned hold, or FILE did not find out)\n"
    "  69   the store cannot be reached: nothing was run\n"
    "  64   asked for wrongly: the command line, a variable, the config file; or the key was used with another "
    "input\n"
    "  1    something else failed: the command could not be started";

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

int code_of(OnceEnd::How how) {
  switch (how) {
    case OnceEnd::How::busy:
      return static_cast<int>(CoordExit::busy);
    case OnceEnd::How::held:
      return static_cast<int>(CoordExit::held);
    case OnceEnd::How::unrecorded:
    case OnceEnd::How::too_large:
      return static_cast<int>(CoordExit::unrecorded);
    case OnceEnd::How::mismatch:
      return static_cast<int>(CoordExit::usage);
    case OnceEnd::How::lost:
      return static_cast<int>(CoordExit::lost);
    case OnceEnd::How::unavailable:
      return static_cast<int>(CoordExit::unavailable);
    default:
      return static_cast<int>(CoordExit::failed);
  }
}

Result<int> tell_end(const OnceEnd& end) {
  if (end.how == OnceEnd::How::interrupted) return end.exit_code;
  if (end.how != OnceEnd::How::told) {
    complain(end.why);
    const auto told = print(end.output);
    return told ? Result<int>(code_of(end.how)) : tl::unexpected<Error>(told.error());
  }
  if (const auto told = print(end.output); !told) return tl::unexpected<Error>(told.error());
  return end.exit_code;
}

Result<int> once(const KeySettings& settings) {
  auto job = once_job(settings.once);
  if (!job) return tl::unexpected<Error>(job.error());
  job->command.inherit_input = true;
  job->what.key = settings.key;
  if (!settings.input.empty()) {
    const auto input = content_of(settings.input);
    if (!input) return tl::unexpected<Error>(input.error());
    job->what.fingerprint = coord::fingerprint_of(*input);
  }
  return coordinate(settings.once.right.store, settings.once.right.store_patience,
                    [&](Coordination& here) { return tell_end(run_once(here, *job)); });
}

}  // namespace

void add_once(Setup setup) {
  const auto settings = std::make_shared<KeySettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "once",
       .description = "run a command once for a key; afterwards print what it printed, with its exit code",
       .example = "once invoice-17 --retention 365d --input order.json --wait 1m -- ./charge.sh order.json\n"
                  "once \"nightly-$(date +%F)\" --wait 1h -- ./report.sh\n"
                  "once invoice-17 --abandoned reconcile --reconcile ./was-it-charged.sh -- ./charge.sh order.json",
       .exit_codes = std::string(exit_codes)},
      static_cast<int>(CoordExit::usage), [settings] { return once(*settings); });
  add_name(app, "KEY", settings->key, "what is to happen once");
  add_command_argument(app, settings->once.command);
  add_text(
      app, "--input", "FILE", settings->input,
      "what the command is about: the same key with another input is refused; JSON counts as equal however written");
  add_once_options(app, settings->once, "whoever is running it", "the next caller runs it again");
}

}  // namespace holdfast::cli
