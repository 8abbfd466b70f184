#include <memory>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "cli/coordination.hpp"
#include "cli/mode.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "core/coord/decision.hpp"
#include "runtime/environment.hpp"
#include "serve/json_value.hpp"

namespace holdfast::cli {

namespace {

struct DecideSettings {
  CallSettings call;
  ModeSettings mode;
  std::string key, value;
  bool shows = false;
};

Result<int> tell(const DecideSettings& settings, const Decided& decided) {
  // What came over HTTP may be any JSON.
  const std::string* text = decided.value.as_string();
  boost::json::value value = serve::json_from(decided.value);
  std::string out = text != nullptr ? *text : boost::json::serialize(value);
  if (settings.call.json) {
    out = boost::json::serialize(boost::json::object{{"key", settings.key},
                                                     {"value", std::move(value)},
                                                     {"proposer", decided.proposer},
                                                     {"decided_at_ms", decided.at.time_since_epoch().count()},
                                                     {"was_ours", decided.was_ours}});
  }
  return answer(out + "\n");
}

Result<int> decide(Coordination& here, const DecideSettings& settings) {
  const auto decided = here.await<Decided>([&](auto handler) {
    here.coordinator().decide(settings.key, Value(settings.value), settings.call.store_patience, std::move(handler),
                              settings.mode.ticket);
  });
  if (!decided) return decided.error();
  return tell(settings, *decided);
}

Result<int> show(Coordination& here, const DecideSettings& settings) {
  const auto decided =
      here.carry_out<std::optional<Decided>, ReadDecision>(settings.call.store_patience, settings.key);
  if (!decided) return decided.error();
  if (!*decided) return fail(Code::not_found, "nothing is decided under '" + settings.key + "' yet");
  return tell(settings, **decided);
}

/// The store, or the journal.
Result<int> accept(const DecideSettings& settings) {
  auto accepting = Accepting::begin(settings.call, settings.mode);
  if (!accepting) return complain_of(accepting.error());
  const std::string& ticket = settings.mode.ticket;
  return accepting->run<Decided>(
      DecideWish{settings.key, settings.value, runtime::host_and_process()}, ticket,
      [&](coord::Available& by, auto handler) {
        by.decide(settings.key, settings.value, ticket, std::move(handler));
      },
      [&](const Decided& decided) { return tell(settings, decided); });
}

Result<int> decide(const DecideSettings& settings) {
  const auto available = is_available(settings.mode);
  if (!available) return tl::unexpected<Error>(available.error());
  if (settings.shows) {
    if (!settings.value.empty() || !settings.mode.ticket.empty()) {
      return fail(Code::usage, "--show only looks, in the store: it takes no VALUE and no --ticket");
    }
    return coordinate(
        settings.call.store, settings.call.store_patience,
        [&](Coordination& here) -> Result<int> { return show(here, settings); }, StoreSession::Create::never);
  }
  if (settings.value.empty()) return fail(Code::usage, "VALUE: it is missing or empty, and would be so for ever");
  if (*available) return accept(settings);
  return coordinate(settings.call.store, settings.call.store_patience,
                    [&](Coordination& here) { return decide(here, settings); });
}

}  // namespace

void add_decide(Setup setup) {
  const auto settings = std::make_shared<DecideSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "decide",
       .description = "propose a value; print the one that was proposed first, now and for ever",
       .example = "decide paid-first order-17\n"
                  "decide paid-first order-17 --mode available --ticket order-17\n"
                  "decide paid-first --show",
       .exit_codes = call_exit_codes("nothing is decided (--show); something else failed: the table is damaged") +
                     mode_exit_codes()},
      static_cast<int>(CoordExit::usage), [settings] { return decide(*settings); });
  add_name(app, "KEY", settings->key, "what is decided");
  add_argument(app, "VALUE", settings->value, "what we propose").required(false);
  add_switch(app, "--show", settings->shows, "propose nothing: print what was decided, if anything was")
      .envname("")  // in the environment of others it would have them propose nothing
      ->configurable(false);
  add_mode(app, settings->mode);
  add_call(app, settings->call, "who proposed it, when, and whether that was us");
}

}  // namespace holdfast::cli
