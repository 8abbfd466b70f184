#include <memory>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "cli/coordination.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

struct DecideSettings {
  std::string store = "sqlite:holdfast.db", key, value;
  Duration store_patience = std::chrono::seconds(5);
  bool json = false;
};

Result<int> decide(Coordination& here, const DecideSettings& settings) {
  std::optional<Ended<Decided>> decided;
  here.coordinator().decide(settings.key, Value(settings.value), settings.store_patience, [&](auto got) {
    decided = std::move(got);
    here.wake();
  });
  if (const auto signal = here.run_until([&] { return decided.has_value(); })) return 128 + *signal;
  if (!*decided) return complain_of(decided->error());
  const std::string* text = (*decided)->value.as_string();
  if (text == nullptr) {
    return complain_of(
        {Failure::Kind::rejected, Error(Code::corrupt, "what was decided about " + settings.key + " is no text")});
  }
  std::string out = *text;
  if (settings.json) {
    out = boost::json::serialize(boost::json::object{{"key", settings.key},
                                                     {"value", *text},
                                                     {"proposer", (*decided)->proposer},
                                                     {"decided_at_ms", (*decided)->at.time_since_epoch().count()},
                                                     {"was_ours", (*decided)->was_ours}});
  }
  const auto printed = print(out + "\n");
  if (!printed) return tl::unexpected<Error>(printed.error());
  return 0;
}

}  // namespace

void add_decide(Setup setup) {
  const auto settings = std::make_shared<DecideSettings>();
  CLI::App& app =
      add_command(setup,
                  {.name = "decide",
                   .description = "propose a value; print the one that was proposed first, now and for ever",
                   .example = "decide paid-first order-17",
                   .exit_codes = "  0    decided: by this call or by an earlier one\n"
                                 "  69   the store cannot be reached\n"
                                 "  64   the command line, a variable or the config file makes no sense\n"
                                 "  1    something else failed"},
                  static_cast<int>(CoordExit::usage), [settings] {
                    return coordinate(settings->store, settings->store_patience,
                                      [&](Coordination& here) { return decide(here, *settings); });
                  });
  add_argument(app, "KEY", settings->key, "what is decided");
  add_argument(app, "VALUE", settings->value, "what we propose");
  add_duration(app, "--store-patience", settings->store_patience,
               "how long to wait for a store that does not answer");
  add_store(app, settings->store);
  add_switch(app, "--json", settings->json, "print a JSON object: who proposed it, when, and whether that was us");
}

}  // namespace holdfast::cli
