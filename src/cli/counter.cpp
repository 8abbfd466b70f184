// holdfast counter
#include "core/coord/counter.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>

#include "cli/coordination.hpp"
#include "cli/mode.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

struct CounterSettings {
  CallSettings call;
  ModeSettings mode;
  std::string key, delta, op;
  std::optional<Duration> remember;
  std::string floor;
};

Result<int> tell_value(const CounterSettings& settings, std::int64_t value, std::optional<bool> was_repeat) {
  std::string out = std::to_string(value);
  if (settings.call.json) {
    boost::json::object object{{"key", settings.key}, {"value", value}};
    if (was_repeat) object["was_repeat"] = *was_repeat;
    out = boost::json::serialize(object);
  }
  return answer(out + "\n");
}

/// The store, or the journal.
Result<int> accept(const CounterSettings& settings, const AddOptions& options) {
  const AddWish wish{options.key, options.delta, options.floor};
  auto accepting = Accepting::begin(settings.call, settings.mode);
  if (!accepting) return complain_of(accepting.error());
  return accepting->run<Added>(
      wish, options.op_id,
      [&](coord::Available& by, auto handler) { by.add(wish, options.op_id, std::move(handler)); },
      [&](const Added& added) { return tell_value(settings, added.value, added.was_repeat); });
}

Result<int> add(const CounterSettings& settings) {
  const auto available = is_available(settings.mode);
  if (!available) return tl::unexpected<Error>(available.error());
  AddOptions options;
  options.key = settings.key;
  const auto op = ticket_of(settings.mode, "--op", settings.op);
  if (!op) return tl::unexpected<Error>(op.error());
  options.op_id = *op;
  const auto delta = parse_number(settings.delta, INT64_MIN, INT64_MAX);
  if (!delta) return fail(Code::usage, "DELTA: " + delta.error().detail);
  options.delta = *delta;
  if (!settings.floor.empty()) {
    const auto floor = parse_number(settings.floor, INT64_MIN, INT64_MAX);
    if (!floor) return fail(Code::usage, "--floor: " + floor.error().detail);
    options.floor = *floor;
  }
  if (*available) return accept(settings, options);
  options.remember = settings.remember.value_or(options.remember);
  const auto remembered = check_within("--remember", options.remember, coord::remembered);
  if (!remembered) return tl::unexpected<Error>(remembered.error());
  options.remember = remembered_by(settings.mode, options.remember);
  return coordinate(settings.call.store, settings.call.store_patience, [&](Coordination& here) -> Result<int> {
    if (options.op_id.empty()) options.op_id = here.random().attempt().to_string();
    const auto added = here.carry_out<Added, Add>(settings.call.store_patience, options);
    if (!added) return added.error();
    return tell_value(settings, added->value, added->was_repeat);
  });
}

Result<int> show(const CounterSettings& settings) {
  return coordinate(
      settings.call.store, settings.call.store_patience,
      [&](Coordination& here) -> Result<int> {
        const auto number = here.carry_out<std::int64_t, ReadNumber>(settings.call.store_patience,
                                                                     AddOptions::To::counter, settings.key);
        if (!number) return number.error();
        return tell_value(settings, *number, std::nullopt);
      },
      StoreSession::Create::never);
}

}  // namespace

void add_counter(Setup setup) {
  const auto settings = std::make_shared<CounterSettings>();
  const auto usage = static_cast<int>(CoordExit::usage);
  CLI::App& adds = add_command(
      setup,
      {.name = "add",
       .description = "add to a counter and print its value; with --op, once however often it is repeated",
       .example = "counter add visits 1 --op request-17\ncounter add seats -2 --floor 0 --op order-9\n"
                  "counter add visits 1 --op request-17 --mode available",
       .exit_codes =
           call_exit_codes("refused: it would go below --floor; or something else failed") + mode_exit_codes()},
      usage, [settings] { return add(*settings); });
  add_name(adds, "KEY", settings->key, "the counter; one that is not there is 0");
  add_argument(adds, "DELTA", settings->delta, "what is added: a whole number, negative ones too");
  add_name(adds, "--op", settings->op, "names this operation: repeated, it counts once");
  add_text(adds, "--floor", "N", settings->floor, "refuse what would take the value below this");
  add_duration(adds, "--remember", settings->remember, "how long --op is remembered, at least",
               "1d; in --mode available a year");
  add_mode(adds, settings->mode, "--op");
  add_call(adds, settings->call, "the value, and whether the operation had been carried out before");
  CLI::App& shows = add_command(setup,
                                {.name = "show",
                                 .description = "print a counter's value",
                                 .example = "counter show visits",
                                 .exit_codes = call_exit_codes("something else failed")},
                                usage, [settings] { return show(*settings); });
  add_name(shows, "KEY", settings->key, "the counter; one that is not there is 0");
  add_call(shows, settings->call, "key and value");
}

}  // namespace holdfast::cli
