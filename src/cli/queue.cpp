// holdfast queue
#include "core/coord/queue.hpp"
#include "core/coord/queue_look.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>
#include <iterator>
#include <memory>

#include "cli/coordination.hpp"
#include "cli/mode.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "core/coord/names.hpp"
#include "core/utf8.hpp"

namespace holdfast::cli {

namespace {

struct QueueSettings {
  CallSettings call;
  ModeSettings mode;
  std::string queue, group, body, dedup_id, receipt, reason, poison, dead_letter, to;
  Duration delay{};
  std::optional<Duration> dedup_window;
  Duration visibility = ReceiveOptions().visibility;
  Duration skew = ReceiveOptions().skew;
  Duration wait{};
  std::int64_t max = static_cast<std::int64_t>(ReceiveOptions().max), redrive_max = 100, poison_after = 0, count = 0;
  bool skip = false;
};
using SettingsPtr = std::shared_ptr<QueueSettings>;

/// Only what begins something makes a table that is not there.
Result<int> coordinate(const QueueSettings& settings, const std::function<Result<int>(Coordination&)>& action,
                       StoreSession::Create create = StoreSession::Create::never) {
  return coordinate(settings.call.store, settings.call.store_patience, action, create);
}

boost::json::object json_of(const Message& message) {
  return {{"seq", message.seq},
          {"body", message.body},
          {"dedup_id", message.dedup_id},
          {"sent_at_ms", message.sent_at.time_since_epoch().count()}};
}

// ---- send ----

Result<int> tell_sent(const QueueSettings& settings, const Sent& sent) {
  if (!settings.call.json)
    return answer(std::to_string(sent.seq) + (sent.was_duplicate ? " sent before" : "") + "\n");
  return answer(
      boost::json::serialize(boost::json::object{{"seq", sent.seq}, {"was_duplicate", sent.was_duplicate}}) + "\n");
}

/// The store, or the journal.
Result<int> accept(const QueueSettings& settings, const SendOptions& options) {
  const SendWish wish{options.queue, options.group, options.body,
                      std::chrono::ceil<std::chrono::milliseconds>(options.delay),
                      std::chrono::ceil<std::chrono::milliseconds>(options.retention)};
  auto accepting = Accepting::begin(settings.call, settings.mode);
  if (!accepting) return complain_of(accepting.error());
  return accepting->run<Sent>(
      wish, options.dedup_id,
      [&](coord::Available& by, auto handler) { by.send(wish, options.dedup_id, std::move(handler)); },
      [&](const Sent& sent) { return tell_sent(settings, sent); });
}

/// At most so much of it: it may have no end.
std::string standard_input(std::size_t most) {
  std::string text(most, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  return text;
}

Result<int> send(const QueueSettings& settings) {
  const auto available = is_available(settings.mode);
  if (!available) return tl::unexpected<Error>(available.error());
  if (const auto fine = check_names(settings.queue, settings.group); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  if (const auto fine = check_within("--delay", settings.delay, coord::delayed); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  SendOptions options;
  options.queue = settings.queue;
  options.group = settings.group;
  const auto dedup_id = ticket_of(settings.mode, "--dedup-id", settings.dedup_id);
  if (!dedup_id) return tl::unexpected<Error>(dedup_id.error());
  options.dedup_id = *dedup_id;
  options.delay = settings.delay;
  options.dedup_window = settings.dedup_window.value_or(options.dedup_window);
  if (const auto fine = check_within("--dedup-window", options.dedup_window, coord::deduplicated); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  options.dedup_window = remembered_by(settings.mode, options.dedup_window);
  options.body = settings.body == "-" ? standard_input(SendOptions::body_most + 1) : settings.body;
  if (options.body.size() > SendOptions::body_most) {
    return fail(Code::usage,
                "the message is too long: it has at most " + std::to_string(SendOptions::body_most) + " bytes");
  }
  if (!is_utf8(options.body)) return fail(Code::usage, "the message is no UTF-8: encode it, as base64 say");
  if (*available) return accept(settings, options);
  return coordinate(
      settings,
      [&](Coordination& here) -> Result<int> {
        const auto sent = here.carry_out<Sent, Send>(settings.call.store_patience, options);
        if (!sent) return sent.error();
        return tell_sent(settings, *sent);
      },
      StoreSession::Create::if_embedded);
}

// ---- receive ----

/// How often a message is given out; nothing: as often as it comes.
std::optional<std::int64_t> poison_after(const QueueSettings& settings) {
  constexpr std::int64_t usual = 5;
  if (settings.poison_after != 0) return settings.poison_after;
  if (settings.poison.empty() || settings.poison == "block") return std::nullopt;
  return usual;
}

Result<coord::Coordinator::Poison> poison_from(const QueueSettings& settings) {
  coord::Coordinator::Poison poison;
  poison.parks = settings.poison != "move";
  poison.dead_letter = settings.dead_letter;
  if (settings.poison == "block" && settings.poison_after != 0) {
    return fail(Code::usage, "--poison block gives a message out for ever, so there is no --poison-after");
  }
  if (!settings.poison.empty() && settings.poison != "block" && settings.poison != "park" &&
      settings.poison != "move") {
    return fail(Code::usage, "--poison: '" + settings.poison + "' is none of block, park, move");
  }
  if (poison.parks != settings.dead_letter.empty()) {
    return fail(Code::usage, "--poison move needs --dead-letter, and nothing else does");
  }
  if (settings.dead_letter == settings.queue) return fail(Code::usage, "--dead-letter: that is the queue itself");
  if (!poison.parks) {
    if (const auto fine = check_names(settings.dead_letter, "g"); !fine) return tl::unexpected<Error>(fine.error());
  }
  return poison;
}

Result<int> tell_batch(const QueueSettings& settings, const Batch& batch, Duration left) {
  if (settings.call.json) {
    boost::json::array messages;
    for (const Message& each : batch.messages) messages.push_back(json_of(each));
    const auto left_ms = std::chrono::floor<std::chrono::milliseconds>(left).count();
    return answer(boost::json::serialize(boost::json::object{{"receipt", batch.receipt.to_string()},
                                                             {"group", batch.receipt.group},
                                                             {"receives", batch.receives},
                                                             {"left_ms", left_ms},
                                                             {"messages", std::move(messages)}}) +
                  "\n");
  }
  std::string out = "receipt " + one_line(batch.receipt.to_string()) + "\n";
  for (const Message& each : batch.messages) out += std::to_string(each.seq) + " " + one_line(each.body) + "\n";
  return answer(out);
}

/// Or the exit code to end with. What comes when a signal has come is given back, as received by nobody.
tl::expected<std::optional<Batch>, int> await_batch(Coordination& here, const QueueSettings& settings,
                                                    const ReceiveOptions& options,
                                                    const coord::Coordinator::Poison& poison) {
  const Duration patience = settings.call.store_patience;
  bool is_wanted = true;
  std::optional<Ended<std::optional<Batch>>> got;
  bool is_given_back = false;
  const auto give_back = [&](const Receipt& receipt) {
    const Settlement undelivered{.kind = Settlement::Kind::nack, .is_undelivered = true};
    here.coordinator().run(
        std::make_unique<Settle>(receipt, undelivered, here.session().instant() + patience, here.random()),
        [&](const Ended<Settled>&) {
          is_given_back = true;
          here.wake();
        });
  };
  here.coordinator().receive(
      options, poison, settings.wait, patience,
      [&](const Ended<std::optional<Batch>>& batch) {
        if (!is_wanted && batch && *batch) give_back((*batch)->receipt);
        got = batch;
        here.wake();
      },
      [&] { return is_wanted; });
  if (const auto signal = here.run_until([&] { return got.has_value(); })) {
    is_wanted = false;
    if (!here.see_out(patience, [&] { return got && (!*got || !**got || is_given_back); })) {
      complain(
          "the store did not say whether what was received was given back; if not, it is due again when its "
          "--visibility is over");
    }
    return tl::unexpected(128 + *signal);
  }
  if (!*got) return tl::unexpected(complain_of(got->error()));
  return **std::move(got);
}

Result<int> receive(const QueueSettings& settings) {
  if (const auto fine = check_names(settings.queue, "g"); !fine) return tl::unexpected<Error>(fine.error());
  if (const auto fine = check_within("--visibility", settings.visibility, coord::visible); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  if (const auto fine = check_within("--skew", settings.skew, coord::skewed); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  const auto poison = poison_from(settings);
  if (!poison) return tl::unexpected<Error>(poison.error());
  ReceiveOptions options;
  options.queue = settings.queue;
  options.max = static_cast<std::size_t>(settings.max);
  options.visibility = settings.visibility;
  options.skew = settings.skew;
  options.receives_most = poison_after(settings);
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    const auto batch = await_batch(here, settings, options, *poison);
    if (!batch) return batch.error();
    if (*batch) return tell_batch(settings, **batch, (*batch)->until - here.session().instant());
    complain("nothing is due in " + settings.queue);
    return static_cast<int>(CoordExit::busy);
  });
}

// ---- What a consumer says ----

Result<int> settle(const QueueSettings& settings, Settlement settlement) {
  const auto receipt = Receipt::from_string(settings.receipt);
  if (!receipt) return fail(Code::usage, "RECEIPT: this is none that 'holdfast queue receive' has printed");
  if (settlement.kind == Settlement::Kind::ack && settlement.count == 0) {
    settlement.count = receipt->last - receipt->first + 1;
  }
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    const auto settled = here.carry_out<Settled, Settle>(settings.call.store_patience, *receipt, settlement);
    if (!settled) return settled.error();
    if (!settings.call.json) return answer(std::to_string(settled->left) + " left\n");
    return answer(boost::json::serialize(boost::json::object{{"left", settled->left}}) + "\n");
  });
}

Result<int> ack(const QueueSettings& settings) {
  return settle(settings, {.kind = Settlement::Kind::ack, .count = settings.count});
}
Result<int> nack(const QueueSettings& settings) {
  if (const auto fine = check_within("--delay", settings.delay, coord::delayed); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  return settle(settings, {.kind = Settlement::Kind::nack, .delay = settings.delay});
}
Result<int> extend(const QueueSettings& settings) {
  if (const auto fine = check_within("--visibility", settings.visibility, coord::visible); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  return settle(settings, {.kind = Settlement::Kind::extend, .visibility = settings.visibility});
}
Result<int> park(const QueueSettings& settings) {
  return settle(settings, {.kind = Settlement::Kind::park, .reason = settings.reason});
}

Result<int> redrive_to(const QueueSettings& settings) {
  if (const auto fine = check_redrive(settings.queue, settings.group, settings.to); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  if (const auto fine = check_within("--skew", settings.skew, coord::skewed); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  if (settings.skip) return fail(Code::usage, "--skip is for a parked group, --to for the messages of any other");
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    const auto redriven = here.await<Redriven>([&](auto handler) {
      here.coordinator().redrive_to(settings.queue, settings.group, settings.to,
                                    static_cast<std::size_t>(settings.redrive_max), settings.skew,
                                    settings.call.store_patience, std::move(handler));
    });
    if (!redriven) return redriven.error();
    const Redriven& done = *redriven;
    if (!settings.call.json)
      return answer(std::to_string(done.moved) + " moved, " + std::to_string(done.left) + " left\n");
    return answer(boost::json::serialize(boost::json::object{{"moved", done.moved}, {"left", done.left}}) + "\n");
  });
}

Result<int> redrive(const QueueSettings& settings) {
  if (!settings.to.empty()) return redrive_to(settings);
  if (const auto fine = check_names(settings.queue, settings.group); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    const auto settled =
        here.carry_out<Settled, Redrive>(settings.call.store_patience, settings.queue, settings.group, settings.skip);
    if (!settled) return settled.error();
    if (!settings.call.json) return answer(std::to_string(settled->left) + " left\n");
    return answer(boost::json::serialize(boost::json::object{{"left", settled->left}}) + "\n");
  });
}

// ---- For people ----

Result<int> peek(const QueueSettings& settings) {
  if (const auto fine = check_names(settings.queue, settings.group); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    const auto view = here.carry_out<std::optional<GroupView>, PeekGroup>(
        settings.call.store_patience, settings.queue, settings.group, static_cast<std::size_t>(settings.max));
    if (!view) return view.error();
    if (!*view) return fail(Code::not_found, settings.queue + " has no group " + settings.group);
    boost::json::array array;
    Table table({{"SEQ", Table::Align::right}, {"BODY"}});
    for (const Message& each : (*view)->messages) {
      array.push_back(json_of(each));
      table.add({std::to_string(each.seq), one_line(each.body)});
    }
    return settings.call.json ? answer(boost::json::serialize(array) + "\n") : answer(table.render());
  });
}

constexpr std::size_t groups_most = 100'000;

Result<int> stats(const QueueSettings& settings) {
  if (const auto fine = check_names(settings.queue, "g"); !fine) return tl::unexpected<Error>(fine.error());
  return coordinate(settings, [&](Coordination& here) -> Result<int> {
    const auto list =
        here.carry_out<GroupList, ListGroups>(settings.call.store_patience, settings.queue, groups_most);
    if (!list) return list.error();
    if (list->is_partial) complain("there are more groups than the first " + std::to_string(groups_most));
    complain_of_damaged(list->damaged);
    const WallTime now = here.session().wall();
    boost::json::array array;
    Table table(
        {{"GROUP"}, {"MESSAGES", Table::Align::right}, {"STATE"}, {"RECEIVES", Table::Align::right}, {"WHY"}});
    for (const Group& each : list->groups) {
      const std::string state = each.state == Group::State::parked      ? "parked"
                                : !each.owner.empty() && each.due > now ? "leased"
                                : each.due > now                        ? "delayed"
                                                                        : "due";
      array.push_back(boost::json::object{{"group", each.group},
                                          {"messages", each.size()},
                                          {"state", state},
                                          {"receives", each.receives},
                                          {"parked_because", each.parked_because}});
      table.add({one_line(each.group), std::to_string(each.size()), state, std::to_string(each.receives),
                 one_line(each.parked_because)});
    }
    return settings.call.json ? answer(boost::json::serialize(array) + "\n") : answer(table.render());
  });
}

// ---- Setting up ----

CLI::App& add_one(Setup setup, const SettingsPtr& settings, CommandText text, const std::string& failed,
                  Result<int> (*action)(const QueueSettings&)) {
  text.exit_codes = call_exit_codes(failed);
  if (action == send) text.exit_codes += mode_exit_codes();
  if (action == redrive) text.exit_codes += "\n  75   somebody else has the group: trying again later can help";
  if (action == receive) text.exit_codes += "\n  75   nothing is due: trying again later can help";
  return add_command(setup, text, static_cast<int>(CoordExit::usage),
                     [settings, action] { return action(*settings); });
}

void add_send(Setup setup, const SettingsPtr& settings) {
  CLI::App& app = add_one(setup, settings,
                          {.name = "send",
                           .description = "add a message to the end of a group",
                           .example = "queue send mails user-7 'hello' --dedup-id request-17\n"
                                      "queue send mails user-7 - <letter.txt\n"
                                      "queue send mails user-7 'hello' --dedup-id request-17 --mode available"},
                          "something else failed", send);
  add_argument(app, "QUEUE", settings->queue, "the queue");
  add_argument(app, "GROUP", settings->group,
               "messages of one group are received in their order, one batch at a time");
  add_argument(app, "BODY", settings->body, "the message, in UTF-8; - reads it from standard input");
  add_name(app, "--dedup-id", settings->dedup_id,
           "the same again with the same id within --dedup-window: nothing happens; another message: refused");
  add_duration(app, "--dedup-window", settings->dedup_window, "how long --dedup-id is known, at least",
               "10m; in --mode available a year");
  add_duration(app, "--delay", settings->delay, "not given out earlier, nor what comes after it in its group");
  add_mode(app, settings->mode, "--dedup-id");
  add_call(app, settings->call, "its number in the group, and whether it had been sent before");
}

void add_receive(Setup setup, const SettingsPtr& settings) {
  CLI::App& app = add_one(setup, settings,
                          {.name = "receive",
                           .description = "lease a group that is due, print the first of its messages and a receipt",
                           .example = "queue receive mails --wait 20s --json\n"
                                      "queue receive mails --poison move --poison-after 3 --dead-letter mails-dead"},
                          "something else failed", receive);
  add_argument(app, "QUEUE", settings->queue, "the queue");
  add_number(app, "--max", settings->max, 1, 100, "how many messages, at most");
  add_duration(app, "--visibility", settings->visibility, "the group is ours for so long");
  add_duration(app, "--skew", settings->skew, "what the clocks of two machines may differ by");
  add_duration(app, "--wait", settings->wait, "how long to wait for something that is due");
  add_text(app, "--poison", "POLICY", settings->poison,
           "a message received too often: block (give it out again and again), park its group, or move it away")
      .default_str("block; with --poison-after park");
  add_number(app, "--poison-after", settings->poison_after, 1, coord::receives_most, "how often is often enough")
      .default_str("5 where it is parked or moved");
  add_text(app, "--dead-letter", "QUEUE", settings->dead_letter, "where --poison move puts it");
  add_call(app, settings->call, "receipt, group, messages");
}

void add_settlement(
    Setup setup, const SettingsPtr& settings, CommandText text, Result<int> (*action)(const QueueSettings&),
    const std::function<void(CLI::App&)>& options = [](CLI::App&) {}) {
  CLI::App& app = add_one(setup, settings, std::move(text), "refused: the receipt's lease is over", action);
  add_argument(app, "RECEIPT", settings->receipt, "as 'holdfast queue receive' printed it");
  options(app);
  add_call(app, settings->call, "how many messages are left in the group");
}

void add_settlements(Setup setup, const SettingsPtr& settings) {
  add_settlement(setup, settings,
                 {.name = "ack",
                  .description = "done with all of the batch, or with the first of it",
                  .example = "queue ack \"$receipt\""},
                 ack, [&](CLI::App& app) {
                   add_number(app, "--count", settings->count, 1, 100,
                              "only so many numbers from its first on: one whose message is missing counts too")
                       .default_str("all");
                 });
  add_settlement(setup, settings,
                 {.name = "nack",
                  .description = "give the group back, to be received again",
                  .example = "queue nack \"$receipt\" --delay 1m"},
                 nack, [&](CLI::App& app) {
                   add_duration(app, "--delay", settings->delay, "the group waits for so long; others do not");
                 });
  add_settlement(setup, settings,
                 {.name = "extend",
                  .description = "keep the group for longer",
                  .example = "queue extend \"$receipt\" --visibility 1m"},
                 extend, [&](CLI::App& app) {
                   add_duration(app, "--visibility", settings->visibility,
                                "from now on, the group is ours for so long");
                 });
  add_settlement(setup, settings,
                 {.name = "park",
                  .description = "set the group aside, with all that is in it, until 'queue redrive'",
                  .example = "queue park \"$receipt\" --reason 'unknown customer'"},
                 park, [&](CLI::App& app) {
                   // Not from the environment: a compensation finds another reason there.
                   add_text(app, "--reason", "TEXT", settings->reason, "for people").envname("");
                 });
}

void add_rest(Setup setup, const SettingsPtr& settings) {
  CLI::App& redrives = add_one(setup, settings,
                               {.name = "redrive",
                                .description = "let a parked group go on, or move dead letters back to their queue",
                                .example = "queue redrive mails-dead user-7 --to mails"},
                               "refused: it is not parked (with --to: it is); or something else failed", redrive);
  add_argument(redrives, "QUEUE", settings->queue, "the queue");
  add_argument(redrives, "GROUP", settings->group, "the group");
  add_switch(redrives, "--skip", settings->skip, "without its first message");
  add_text(redrives, "--to", "QUEUE", settings->to,
           "move its messages, in order, each once, to the end of the same group there");
  add_number(redrives, "--max", settings->redrive_max, 1, 100, "with --to: how many messages, at most");
  add_duration(redrives, "--skew", settings->skew, "with --to: what the clocks of two machines may differ by");
  add_call(redrives, settings->call, "how many messages are left in the group, and with --to how many moved");
  CLI::App& peeks = add_one(setup, settings,
                            {.name = "peek",
                             .description = "print what is first in a group; it is not received by that",
                             .example = "queue peek mails user-7"},
                            "there is no such group; or something else failed", peek);
  add_argument(peeks, "QUEUE", settings->queue, "the queue");
  add_argument(peeks, "GROUP", settings->group, "the group");
  add_number(peeks, "--max", settings->max, 1, 100, "how many messages, at most");
  add_call(peeks, settings->call, "an array of messages");
  CLI::App& tells = add_one(setup, settings,
                            {.name = "stats",
                             .description = "the groups that have messages, and what they are waiting for",
                             .example = "queue stats mails"},
                            "something else failed", stats);
  add_argument(tells, "QUEUE", settings->queue, "the queue");
  add_call(tells, settings->call, "an array of groups");
}

}  // namespace

void add_queue(Setup setup) {
  const auto settings = std::make_shared<QueueSettings>();
  add_send(setup, settings);
  add_receive(setup, settings);
  add_settlements(setup, settings);
  add_rest(setup, settings);
}

}  // namespace holdfast::cli
