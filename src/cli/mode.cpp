#include "cli/mode.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "cli/journal_file.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "core/coord/limits.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/environment.hpp"
#include "serve/json_value.hpp"
#include "store/open.hpp"

namespace holdfast::cli {

void add_max_age(CLI::App& app, Duration& target) {
  add_duration(app, "--max-age", target, "a ticket that is not reconciled for so long is rejected");
}

void add_max_provisional(CLI::App& app, std::int64_t& target) {
  add_number(app, "--max-provisional", target, 1, 1'000'000, "more tickets that wait to be reconciled: refused");
}

void add_ticket(CLI::App& app, std::string& target, const std::string& description) {
  add_name(app, "--ticket", target, description).envname("")->configurable(false);
}

void add_mode(CLI::App& app, ModeSettings& settings, const std::string& same_as) {
  add_text(app, "--mode", "MODE", settings.mode,
           "while the store is away: consistent (say so) or available (accept provisionally, into a journal)");
  add_journal_file(app, settings.journal);
  add_ticket(app, settings.ticket,
             "names this operation, in journal and store: repeated, it happens once" +
                 (same_as.empty() ? "" : "; the same as " + same_as));
  add_max_age(app, settings.max_age);
  add_max_provisional(app, settings.max_provisional);
}

Result<bool> is_available(const ModeSettings& settings) {
  if (settings.mode == "available") return true;
  if (settings.mode != "consistent") {
    return fail(Code::usage, "--mode: '" + settings.mode + "' is none of consistent, available");
  }
  return false;
}

Result<std::string> ticket_of(const ModeSettings& settings, const std::string& option, const std::string& given) {
  if (settings.ticket.empty() || given.empty() || given == settings.ticket) {
    return settings.ticket.empty() ? given : settings.ticket;
  }
  return fail(Code::usage, option + " and --ticket name the operation: one of them is enough");
}

Duration remembered_by(const ModeSettings& settings, Duration usual) {
  return settings.ticket.empty() ? usual : std::max(usual, intent_remembered);
}

std::string mode_exit_codes() {
  return "\n  79   provisional: it is in this machine's journal, not in the store ('holdfast journal reconcile')";
}

Result<int> tell_provisional(bool json, const Provisional& provisional) {
  complain("not in the store but in the journal, provisionally: " + provisional.why);
  std::string out = "provisional " + one_line(provisional.ticket);
  // Where another proposal waits already, it is that one, under that one's ticket.
  const auto* decide = std::get_if<DecideWish>(&provisional.wish);
  // What came over HTTP may be any JSON.
  boost::json::value proposed = decide != nullptr ? serve::json_from(decide->proposal) : boost::json::value();
  if (decide != nullptr) {
    const std::string* text = decide->proposal.as_string();
    out += " " + one_line(text != nullptr ? *text : boost::json::serialize(proposed));
  }
  if (json) {
    boost::json::object object{{"provisional", true},
                               {"ticket", provisional.ticket},
                               {"kind", kind_of(provisional.wish)},
                               {"until_ms", provisional.until.time_since_epoch().count()},
                               {"was_there", provisional.was_there}};
    if (decide != nullptr) object["proposed"] = std::move(proposed);
    out = boost::json::serialize(object);
  }
  return answer(out + "\n", CoordExit::provisional);
}

Result<Accepting> Accepting::begin(const CallSettings& call, const ModeSettings& mode) {
  if (const auto fine = check_within("--max-age", mode.max_age, coord::waiting); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  Accepting accepting;
  accepting.json_ = call.json;
  accepting.options_.max_age = mode.max_age;
  accepting.options_.max_provisional = static_cast<std::size_t>(mode.max_provisional);
  accepting.options_.patience = call.store_patience;
  accepting.options_.proposer = runtime::host_and_process();
  auto journal = open_journal(mode.journal, call.store, true);
  if (!journal) return tl::unexpected<Error>(journal.error());
  accepting.journal_ = *std::move(journal);
  // A table whose file is not there is away: another one in its place would be empty.
  auto here = Coordination::open(call.store, call.store_patience, StoreSession::Create::never);
  if (here) {
    accepting.here_ = *std::move(here);
  } else if (here.error().code == Code::not_found) {
    accepting.why_ = store::absent_file(call.store).value_or(here.error().detail);
  } else if (here.error().code == Code::unavailable) {
    accepting.why_ = here.error().detail;
  } else {
    return tl::unexpected<Error>(here.error());
  }
  return accepting;
}

Result<int> Accepting::without_store(const Wish& wish, const std::string& ticket) {
  runtime::AsioLoop loop(runtime::random_seed());  // for its clocks and its ids
  auto accepted = coord::accept(*journal_, wish, ticket, why_, options_, loop.now(), loop.random());
  if (!accepted) return complain_of(accepted.error());
  return tell_provisional(json_, *accepted);
}

}  // namespace holdfast::cli
