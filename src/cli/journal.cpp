#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <memory>

#include "cli/coordination.hpp"
#include "cli/journal_file.hpp"
#include "cli/mode.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "coord/available.hpp"
#include "coord/reconcile.hpp"
#include "core/coord/limits.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/environment.hpp"
#include "runtime/units.hpp"
#include "store/json.hpp"
#include "store/open.hpp"

namespace holdfast::cli {

namespace {

using coord::Available;
using coord::AvailableOptions;
using coord::Journal;
using coord::JournalOptions;
using Create = StoreSession::Create;

struct JournalSettings {
  std::string store = "sqlite:holdfast.db", journal = "holdfast.journal", id, merge = "equal", ticket;
  std::vector<std::string> basket, command;
  Duration store_patience = std::chrono::seconds(5);
  Duration ttl = std::chrono::hours(24 * 7);
  Duration max_age = std::chrono::hours(24);
  Duration compensation_limit = coord::ReconcileOptions().compensation_limit;
  bool all = false, json = false;
};

std::string words_of(const Basket& basket) {
  std::string words;
  for (const auto& [sku, count] : basket) words += (words.empty() ? "" : " ") + sku + "=" + std::to_string(count);
  return words;
}

// ---- ls ----

std::string state_of(const Intent& intent) {
  std::string state(to_string(intent.state));
  if (intent.compensation == Intent::Compensation::due) state += ", to be compensated";
  if (intent.compensation == Intent::Compensation::begun) state += ", compensation begun";
  if (intent.compensation == Intent::Compensation::done) state += ", compensated";
  return state;
}

boost::json::object json_of(const Intent& intent) {
  return {{"ticket", intent.ticket},
          {"kind", kind_of(intent.wish)},
          {"subject", subject_of(intent.wish)},
          {"state", to_string(intent.state)},
          {"compensation", to_string(intent.compensation)},
          {"accepted_at_ms", intent.accepted_at.time_since_epoch().count()},
          {"expires_at_ms", intent.expires_at.time_since_epoch().count()},
          {"arguments", boost::json::parse(store::to_json(arguments_of(intent.wish)))},
          {"note", intent.note}};
}

boost::json::object json_of(const Basket& basket) {
  boost::json::object items;
  for (const auto& [sku, count] : basket) items[sku] = count;
  return items;
}

boost::json::object json_of(const Quota& quota) {
  return {{"quota", quota.id},
          {"state", to_string(quota.state)},
          {"set_aside", json_of(quota.basket)},
          {"left", json_of(quota.left)},
          {"expires_at_ms", quota.expires_at.time_since_epoch().count()}};
}

/// Looks only: also where the store is another, or is not to be had.
Result<int> list(const JournalSettings& settings) {
  JournalOptions options;
  options.path = settings.journal;
  options.create = false;
  const auto journal = Journal::open(std::move(options));
  if (!journal) return complain_of(journal.error());
  const auto quotas = (*journal)->quotas();
  if (!quotas) return complain_of(quotas.error());
  boost::json::array array;
  Table table({{"TICKET"}, {"STATE"}, {"ABOUT"}, {"NOTE"}});
  for (const Quota& quota : *quotas) {
    if (quota.state == Quota::State::returned && !settings.all) continue;
    array.push_back(json_of(quota));
    const bool is_over = quota.state == Quota::State::returned;
    const std::string left = quota.left.empty() ? "sold out" : words_of(quota.left) + " left";
    table.add(
        {"quota " + quota.id, std::string(to_string(quota.state)), words_of(quota.basket), is_over ? "" : left});
  }
  const auto which = settings.all ? Journal::Which::all : Journal::Which::open;
  for (std::int64_t after = 0;;) {
    const auto intents = (*journal)->list(which, after, 1000);
    if (!intents) return complain_of(intents.error());
    if (intents->empty()) break;
    for (const Intent& intent : *intents) {
      array.push_back(json_of(intent));
      table.add(
          {one_line(intent.ticket), state_of(intent), one_line(subject_of(intent.wish)), one_line(intent.note)});
    }
    after = intents->back().seq;
  }
  return answer(settings.json ? boost::json::serialize(array) + "\n" : table.render());
}

// ---- With the store ----

/// What makes good for a rejected ticket: a command, told of it by its environment, that is ended when its time is
/// over.
coord::Compensate compensation(const JournalSettings& settings, Coordination& here) {
  return [&settings, &here](const Intent& intent, bool is_repeat, const std::function<void(Result<void>)>& done) {
    runtime::SpawnOptions options;
    options.arguments = settings.command;
    if (settings.json) options.output = runtime::SpawnOptions::Output::errors;  // ours is one document
    options.environment = {{"HOLDFAST_TICKET", intent.ticket},
                           {"HOLDFAST_KIND", std::string(kind_of(intent.wish))},
                           {"HOLDFAST_SUBJECT", subject_of(intent.wish)},
                           {"HOLDFAST_REASON", one_line(intent.note)},
                           {"HOLDFAST_REPEAT", is_repeat ? "1" : "0"}};
    const Duration limit = settings.compensation_limit;
    const TimeLimit time{here.session().instant() + limit, std::min<Duration>(limit / 5, std::chrono::seconds(5))};
    const auto started = here.start_command(
        std::move(options), time,
        [done, name = settings.command.front(), limit](const coord::GuardedChild::Ending& how) {
          if (how.was_late) {
            return done(fail(Code::unavailable, name + " was ended: it has " + runtime::write_duration(limit)));
          }
          if (how.exit.code == 0) return done({});
          done(fail(Code::internal, name + " ended with " + std::to_string(how.exit.code)));
        });
    if (!started) done(tl::unexpected<Error>(started.error()));
  };
}

Result<int> tell_report(const ReconcileReport& report, bool json) {
  for (const std::string& note : report.notes) complain(note);
  if (report.left > 0 && report.notes.empty() && !report.store_is_away) {
    complain(std::to_string(report.left) +
             " left: see 'holdfast journal ls'; what was rejected waits for a command that makes good for it: "
             "'holdfast journal reconcile -- CMD'");
  }
  std::string out = std::to_string(report.confirmed) + " confirmed, " + std::to_string(report.rejected) +
                    " rejected, " + std::to_string(report.compensated) + " compensated, " +
                    std::to_string(report.left) + " left";
  if (report.quotas_returned > 0) out += ", quotas returned: " + std::to_string(report.quotas_returned);
  if (json) {
    out = boost::json::serialize(boost::json::object{{"confirmed", report.confirmed},
                                                     {"rejected", report.rejected},
                                                     {"compensated", report.compensated},
                                                     {"left", report.left},
                                                     {"quotas_returned", report.quotas_returned},
                                                     {"store_is_away", report.store_is_away}});
  }
  return answer(out + "\n", report.store_is_away ? CoordExit::unavailable
                            : report.is_all()    ? CoordExit::fine
                                                 : CoordExit::failed);
}

Result<int> reconcile(Coordination& here, Journal& journal, const JournalSettings& settings) {
  coord::ReconcileOptions options;
  options.patience = settings.store_patience;
  if (settings.merge == "any") options.merge = [](const DecideWish&, const Decided&) { return true; };
  if (!settings.command.empty()) options.compensate = compensation(settings, here);
  // What was killed needs a moment to be seen to have ended.
  options.compensation_limit = settings.compensation_limit + std::chrono::seconds(5);
  coord::Reconciler reconciler(journal, here.session().store(), here.session().loop());
  std::optional<Ended<ReconcileReport>> ended;
  reconciler.run(std::move(options), [&](Ended<ReconcileReport> got) {
    ended = std::move(got);
    here.wake();
  });
  if (const auto signal = here.run_until([&] { return ended.has_value(); })) return 128 + *signal;
  if (!*ended) return complain_of(ended->error());
  return tell_report(**ended, settings.json);
}

Result<int> reconcile(const JournalSettings& settings) {
  if (settings.merge != "equal" && settings.merge != "any") {
    return fail(Code::usage, "--merge: '" + settings.merge + "' is none of equal, any");
  }
  constexpr Duration shortest = std::chrono::milliseconds(100);
  constexpr Duration longest = std::chrono::hours(24);
  if (settings.compensation_limit < shortest || settings.compensation_limit > longest) {
    return fail(Code::usage, "--compensation-limit is from 100ms to 24h: others wait for so long");
  }
  const auto journal = open_journal(settings.journal, settings.store, false);
  if (!journal) return complain_of(journal.error());
  if (const auto absent = store::absent_file(settings.store)) {
    complain(*absent);
    return static_cast<int>(CoordExit::unavailable);
  }
  return coordinate(
      settings.store, settings.store_patience,
      [&](Coordination& here) { return reconcile(here, **journal, settings); }, Create::never);
}

AvailableOptions mode_of(const JournalSettings& settings) {
  AvailableOptions options;
  options.max_age = settings.max_age;
  options.patience = settings.store_patience;
  options.proposer = runtime::host_and_process();
  return options;
}

Result<int> set_aside(const JournalSettings& settings) {
  if (const auto fine = check_within("--ttl", settings.ttl, coord::set_aside); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  const auto basket = basket_from_words(settings.basket);
  if (!basket) return tl::unexpected<Error>(basket.error());
  const auto journal = open_journal(settings.journal, settings.store, true);
  if (!journal) return complain_of(journal.error());
  return coordinate(
      settings.store, settings.store_patience,
      [&](Coordination& here) -> Result<int> {
        Available available(**journal, here.session().store(), here.session().loop(), mode_of(settings));
        std::optional<Ended<Quota>> ended;
        available.set_aside(settings.id, *basket, settings.ttl, [&](Ended<Quota> got) {
          ended = std::move(got);
          here.wake();
        });
        if (const auto signal = here.run_until([&] { return ended.has_value(); })) return 128 + *signal;
        if (!*ended) return complain_of(ended->error());
        if (!available.check_set_aside(settings.ttl)) {
          complain(
              "nothing is sold of it unless 'journal sell' is given a --max-age that is shorter than this --ttl");
        }
        return 0;
      },
      Create::never);
}

Result<int> give_back(const JournalSettings& settings) {
  const auto journal = open_journal(settings.journal, settings.store, false);
  if (!journal) return complain_of(journal.error());
  const auto closed = (*journal)->close_quota(settings.id);
  if (!closed) return complain_of(closed.error());
  if (*closed) return 0;
  return complain_of(Error(Code::not_found, "there is no open quota " + settings.id + " in " + settings.journal));
}

/// The journal alone: no store is asked.
Result<int> sell(const JournalSettings& settings) {
  if (const auto fine = check_within("--max-age", settings.max_age, coord::waiting); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  const auto basket = basket_from_words(settings.basket);
  if (!basket) return tl::unexpected<Error>(basket.error());
  const auto journal = open_journal(settings.journal, settings.store, false);
  if (!journal) return complain_of(journal.error());
  runtime::AsioLoop loop(runtime::random_seed());  // for its clocks and its ids
  const auto sold = coord::sell(**journal, *basket, settings.ticket, mode_of(settings), loop.now(), loop.random());
  if (!sold) return complain_of(sold.error());
  return answer(sold->ticket + "\n");
}

const std::string store_codes =
    "  69   the store cannot be reached\n"
    "  64   asked for wrongly: the command line, a variable, the config file, an id that was used for something "
    "else\n";

/// Of what asks no store.
std::string alone_codes(const std::string& failed) {
  return "  0    fine\n  69   others write to the journal for too long\n"
         "  64   asked for wrongly: the command line, a variable, the config file, an id that was used for something "
         "else\n  1    " +
         failed;
}
void add_store_and_patience(CLI::App& app, JournalSettings& settings) {
  add_journal_file(app, settings.journal);
  add_store(app, settings.store);
  add_duration(app, "--store-patience", settings.store_patience, "how long to wait for a store that does not answer");
}

void add_ls(Setup setup) {
  const auto settings = std::make_shared<JournalSettings>();
  CLI::App& app = add_command(setup,
                              {.name = "ls",
                               .description = "tickets that are not over, and quotas",
                               .example = "journal ls --journal shop.journal",
                               .exit_codes = alone_codes("there is no journal, or it cannot be read")},
                              static_cast<int>(CoordExit::usage), [settings] { return list(*settings); });
  add_journal_file(app, settings->journal);
  add_switch(app, "--all", settings->all, "also what is over");
  add_switch(app, "--json", settings->json, "print a JSON array");
}

void add_reconcile(Setup setup) {
  const auto settings = std::make_shared<JournalSettings>();
  CLI::App& app =
      add_command(setup,
                  {.name = "reconcile",
                   .description = "carry out what a journal holds, in order; run a command for what was rejected",
                   .example = "journal reconcile --journal shop.journal -- ./tell-the-customer.sh",
                   .exit_codes = "  0    everything is settled\n  75   another process is reconciling it\n" +
                                 store_codes + "  1    something is left: why is told on standard error"},
                  static_cast<int>(CoordExit::usage), [settings] { return reconcile(*settings); });
  add_arguments(app, "CMD", settings->command,
                "run for each rejected ticket, once, with HOLDFAST_TICKET, _KIND, _SUBJECT, _REASON, and _REPEAT=1 "
                "where it was broken off before; without it they wait for one");
  add_duration(
      app, "--compensation-limit", settings->compensation_limit,
      "how long each run of CMD may take: then it is ended (SIGTERM a little before, SIGKILL), has failed, and "
      "is run again by the next 'reconcile'");
  add_text(app, "--merge", "RULE", settings->merge,
           "decisions that others won: equal (the same value confirms ours) or any (every value does)");
  add_store_and_patience(app, *settings);
  add_switch(app, "--json", settings->json, "print a JSON object");
}

void add_quotas(Setup setup) {
  const auto settings = std::make_shared<JournalSettings>();
  const auto usage = static_cast<int>(CoordExit::usage);
  CLI::App& asides = add_command(
      setup,
      {.name = "set-aside",
       .description = "set goods aside in the store, to be sold from the journal",
       .example = "journal set-aside till-3 shirt=20 hat=5 --ttl 7d",
       .exit_codes = "  0    they are set aside\n" + store_codes + "  1    there are too few, or something failed"},
      usage, [settings] { return set_aside(*settings); });
  add_name(asides, "ID", settings->id, "names the quota");
  add_arguments(asides, "SKU=COUNT", settings->basket, "what is set aside").required();
  add_duration(asides, "--ttl", settings->ttl, "they return by themselves after so long");
  add_store_and_patience(asides, *settings);

  CLI::App& back = add_command(setup,
                               {.name = "give-back",
                                .description = "sell nothing more of a quota; 'reconcile' returns what is left",
                                .example = "journal give-back till-3",
                                .exit_codes = alone_codes("there is no such quota")},
                               usage, [settings] { return give_back(*settings); });
  add_name(back, "ID", settings->id, "names the quota");
  add_journal_file(back, settings->journal);
  add_store(back, settings->store);

  CLI::App& sells =
      add_command(setup,
                  {.name = "sell",
                   .description = "sell goods out of a quota, without the store, and print the ticket",
                   .example = "journal sell shirt=1 --ticket order-17",
                   .exit_codes = alone_codes("too few are left; the ticket was rejected; there is no journal")},
                  usage, [settings] { return sell(*settings); });
  add_arguments(sells, "SKU=COUNT", settings->basket, "what is sold, all or nothing").required();
  add_ticket(sells, settings->ticket, "names this sale: repeated, it happens once");
  add_max_age(sells, settings->max_age);
  add_store_and_patience(sells, *settings);
}

}  // namespace

void add_journal(Setup setup) {
  add_ls(setup);
  add_reconcile(setup);
  add_quotas(setup);
}

}  // namespace holdfast::cli
