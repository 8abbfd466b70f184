// holdfast stock
#include "core/coord/stock.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>

#include "cli/coordination.hpp"
#include "cli/journal_file.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "core/coord/counter.hpp"

namespace holdfast::cli {

namespace {

struct StockSettings {
  CallSettings call;
  std::string id, sku, count, op, mode = "consistent";
  std::vector<std::string> items;
  Duration ttl = ReserveOptions().ttl;
  Duration remember = ReserveOptions().remember;
  Duration remember_op = AddOptions().remember;
  Duration skew = std::chrono::seconds(1);
};
using SettingsPtr = std::shared_ptr<StockSettings>;

Result<int> tell_reservation(const StockSettings& settings, const Reservation& reservation) {
  std::string out = reservation.id + " " + std::string(to_string(reservation.state));
  if (settings.call.json) {
    boost::json::object items;
    for (const auto& [sku, count] : reservation.basket) items[sku] = count;
    out = boost::json::serialize(
        boost::json::object{{"id", reservation.id},
                            {"state", to_string(reservation.state)},
                            {"items", std::move(items)},
                            {"expires_at_ms", reservation.expires_at.time_since_epoch().count()},
                            {"was_repeat", reservation.was_repeat}});
  }
  return answer(out + "\n");
}

/// Only what begins something makes a table that is not there.
Result<int> coordinate(const StockSettings& settings, const std::function<Result<int>(Coordination&)>& action,
                       StoreSession::Create create = StoreSession::Create::never) {
  return coordinate(settings.call.store, settings.call.store_patience, action, create);
}

Result<int> tell_available(const StockSettings& settings, std::int64_t available,
                           std::optional<bool> was_repeat = std::nullopt) {
  std::string out = std::to_string(available);
  if (settings.call.json) {
    boost::json::object object{{"sku", settings.sku}, {"available", available}};
    if (was_repeat) object["was_repeat"] = *was_repeat;
    out = boost::json::serialize(object);
  }
  return answer(out + "\n");
}

Result<int> add(const StockSettings& settings) {
  const auto delta = parse_number(settings.count, INT64_MIN, INT64_MAX);
  if (!delta) return fail(Code::usage, "COUNT: " + delta.error().detail);
  const auto remembered = check_within("--remember", settings.remember_op, coord::remembered);
  if (!remembered) return tl::unexpected<Error>(remembered.error());
  return coordinate(
      settings,
      [&](Coordination& here) -> Result<int> {
        AddOptions options;
        options.key = settings.sku;
        options.delta = *delta;
        options.to = AddOptions::To::stock;
        options.remember = settings.remember_op;
        options.op_id = settings.op.empty() ? here.random().attempt().to_string() : settings.op;
        const auto added = here.carry_out<Added, Add>(settings.call.store_patience, options);
        if (!added) return added.error();
        return tell_available(settings, added->value, added->was_repeat);
      },
      StoreSession::Create::if_embedded);
}

Result<int> show(const StockSettings& settings) {
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    const auto number =
        here.carry_out<std::int64_t, ReadNumber>(settings.call.store_patience, AddOptions::To::stock, settings.sku);
    if (!number) return number.error();
    return tell_available(settings, *number);
  });
}

Result<int> reserve(const StockSettings& settings) {
  auto basket = basket_from_words(settings.items);
  if (!basket) return tl::unexpected<Error>(basket.error());
  if (settings.mode == "available") {
    return fail(Code::usage,
                "--mode: a reservation is never provisional, since nothing is promised twice: set goods aside while "
                "the store is there ('holdfast journal set-aside'), and sell of those ('holdfast journal sell')");
  }
  if (settings.mode != "consistent") {
    return fail(Code::usage, "--mode: '" + settings.mode + "' is not consistent, the only one that there is here");
  }
  for (const auto& fine : {check_within("--ttl", settings.ttl, coord::reserved),
                           check_within("--remember", settings.remember, coord::remembered),
                           check_within("--skew", settings.skew, coord::skewed)}) {
    if (!fine) return tl::unexpected<Error>(fine.error());
  }
  return coordinate(
      settings,
      [&](Coordination& here) -> Result<int> {
        const auto reserved = here.await<Reservation>([&](auto handler) {
          here.coordinator().reserve({settings.id, *basket, settings.ttl, settings.remember}, settings.skew,
                                     settings.call.store_patience, std::move(handler));
        });
        if (!reserved) return reserved.error();
        return tell_reservation(settings, *reserved);
      },
      StoreSession::Create::if_embedded);
}

Result<int> end(const StockSettings& settings, Reservation::State into) {
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    const auto ended = here.await<Reservation>([&](auto handler) {
      here.coordinator().end_reservation(settings.id, into, settings.skew, settings.call.store_patience,
                                         std::move(handler));
    });
    if (!ended) return ended.error();
    return tell_reservation(settings, *ended);
  });
}

Result<int> reservation(const StockSettings& settings) {
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    const auto there = here.carry_out<Reservation, ReadReservation>(settings.call.store_patience, settings.id);
    if (!there) return there.error();
    return tell_reservation(settings, *there);
  });
}

Result<int> sweep(const StockSettings& settings) {
  if (const auto fine = check_within("--skew", settings.skew, coord::skewed); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    constexpr std::size_t at_once = 100;
    std::size_t all = 0;
    for (std::size_t latest = at_once; latest == at_once; all += latest) {
      const auto returned = here.carry_out<std::size_t, ReturnExpired>(settings.call.store_patience, settings.skew,
                                                                       std::size_t{at_once});
      if (!returned) return returned.error();
      latest = *returned;
    }
    const std::string out = settings.call.json ? boost::json::serialize(boost::json::object{{"returned", all}})
                                               : "returned " + std::to_string(all);
    return answer(out + "\n");
  });
}

CLI::App& add_one(Setup setup, CommandText text, const std::string& failed, const SettingsPtr& settings,
                  Result<int> (*action)(const StockSettings&)) {
  text.exit_codes = call_exit_codes(failed);
  return add_command(setup, text, static_cast<int>(CoordExit::usage),
                     [settings, action] { return action(*settings); });
}

void add_end(Setup setup, const SettingsPtr& settings, CommandText text,
             Result<int> (*action)(const StockSettings&)) {
  const std::string failed =
      action == reservation ? "there is none" : "refused: it has ended in another way, or there is none";
  CLI::App& app = add_one(setup, std::move(text), failed, settings, action);
  add_name(app, "ID", settings->id, "the reservation");
  add_call(app, settings->call, "the reservation");
}

void add_skew(CLI::App& app, StockSettings& settings) {
  add_duration(app, "--skew", settings.skew, "what the clocks of two machines may differ by");
}

}  // namespace

void add_stock(Setup setup) {
  const auto settings = std::make_shared<StockSettings>();
  CLI::App& adds =
      add_one(setup,
              {.name = "add",
               .description = "put goods in, or take them out; with --op, once however often it is repeated",
               .example = "stock add shirt 100 --op delivery-7\nstock add shirt -3 --op broken-2"},
              "refused: there are not so many; or something else failed", settings, add);
  add_name(adds, "SKU", settings->sku, "the article");
  add_argument(adds, "COUNT", settings->count, "how many: a whole number, negative to take out");
  add_name(adds, "--op", settings->op, "names this operation: repeated, it counts once");
  add_duration(adds, "--remember", settings->remember_op, "how long --op is remembered, at least");
  add_call(adds, settings->call, "how many are available, and whether the operation had been carried out before");

  CLI::App& shows = add_one(
      setup,
      {.name = "show",
       .description = "how many are available; what has expired counts as set aside until 'sweep', or a 'reserve' "
                      "that finds too little",
       .example = "stock show shirt"},
      "something else failed", settings, show);
  add_name(shows, "SKU", settings->sku, "the article");
  add_call(shows, settings->call, "how many are available");

  CLI::App& reserves = add_one(
      setup,
      {.name = "reserve",
       .description = "set goods aside, all or none, until they are confirmed, cancelled or expire",
       .example = "stock reserve order-17 shirt=2 hat=1 --ttl 15m"},
      "refused: of something there are too few, or ID has ended; or something else failed", settings, reserve);
  add_name(reserves, "ID", settings->id,
           "names the reservation: repeated while it is held or confirmed, it is made once");
  add_arguments(reserves, "SKU=COUNT", settings->items, "what, and how many").required();
  add_duration(reserves, "--ttl", settings->ttl, "goods that are not confirmed by then come back");
  add_duration(reserves, "--remember", settings->remember, "how long ID is known after that, at least");
  add_skew(reserves, *settings);
  add_text(reserves, "--mode", "MODE", settings->mode,
           "consistent; what can be sold while the store is away was set aside before: 'journal sell'");
  add_call(reserves, settings->call, "the reservation");

  add_end(setup, settings,
          {.name = "confirm", .description = "the goods are gone for good", .example = "stock confirm order-17"},
          [](const StockSettings& all) { return end(all, Reservation::State::confirmed); });
  add_end(setup, settings,
          {.name = "cancel", .description = "the goods come back", .example = "stock cancel order-17"},
          [](const StockSettings& all) { return end(all, Reservation::State::cancelled); });
  add_end(setup, settings,
          {.name = "reservation", .description = "what became of one", .example = "stock reservation order-17"},
          reservation);
  CLI::App& sweeps =
      add_one(setup,
              {.name = "sweep",
               .description = "bring back what has expired; 'reserve' does so where it finds too little",
               .example = "stock sweep"},
              "something else failed", settings, sweep);
  add_skew(sweeps, *settings);
  add_call(sweeps, settings->call, "how many reservations were ended");
}

}  // namespace holdfast::cli
