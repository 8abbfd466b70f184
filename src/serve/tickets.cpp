#include "serve/tickets.hpp"

#include <utility>

#include "core/hexadecimal.hpp"
#include "serve/json_value.hpp"

namespace holdfast::serve {

namespace {

using namespace std::chrono_literals;
using Type = Field::Type;

// Soon enough for whoever waits to hear what became of his ticket; spread, since a store that comes back has enough
// to do.
constexpr Duration least_pause = 1s;
constexpr Duration most_pause = 5s;

}  // namespace

Tickets::Tickets(coord::Journal& journal, Store& store, Loop& loop, coord::AvailableOptions options)
    : journal_(journal), loop_(loop), available_(journal, store, loop, std::move(options)) {
  plan();
}

Tickets::~Tickets() {
  loop_.cancel(timer_);
}

void Tickets::plan() {
  timer_ = loop_.call_after(loop_.random().between(least_pause, most_pause), [this] { look(); });
}

void Tickets::look() {
  const auto open = journal_.count_open();
  const auto quotas = journal_.quotas();
  // A journal that cannot be read is told to whoever asks for something of it.
  if (!open || !quotas || (*open == 0 && quotas->empty())) return plan();
  is_reconciling_ = true;
  available_.reconcile({}, [this, alive = std::weak_ptr(alive_)](const auto&) {
    if (alive.expired()) return;
    is_reconciling_ = false;
    plan();
  });
}

Ended<bool> Tickets::note_compensated(Intent intent) {
  if (intent.state != Intent::State::rejected || intent.compensation == Intent::Compensation::done) return false;
  // Our own passes compensate nothing, and keep others out.
  if (!is_reconciling_) {
    const auto locked = journal_.lock();
    if (!locked) return tl::unexpected(locked.error());
    if (!*locked) {
      return tl::unexpected(Failure{Failure::Kind::busy,
                                    Error(Code::unavailable, "Another process reconciles " + journal_.path() + ".")});
    }
  }
  begin_compensation(intent);
  end_compensation(intent);
  const auto noted = journal_.put(intent);
  if (!is_reconciling_) journal_.unlock();
  if (!noted) return tl::unexpected(noted.error());
  return true;
}

// ---- What callers are told ----

Field mode_field() {
  return {.name = "mode",
          .about = "while the store is away: say so, or accept provisionally, with 202",
          .otherwise = "consistent",
          .words = {"consistent", "available"}};
}

bool has_journal(const Desk& desk, const CallPtr& call) {
  if (desk.tickets != nullptr) return true;
  call->fail(Problem{422, "rejected", "This server has no journal: it was started without --journal.", {}});
  return false;
}

Route::Answer provisional_answer() {
  return {202,
          "accepted provisionally: it is on the server's disk, and will be confirmed or rejected",
          {"Provisional",
           "what is not in the store yet",
           {{.name = "provisional", .type = Type::boolean, .about = "true", .is_required = true},
            {.name = "ticket", .about = "its name from now on, here and in the store", .is_required = true},
            {.name = "kind",
             .about = "what was asked for",
             .is_required = true,
             .words = {"decide", "add", "draw", "send"}},
            {.name = "until_ms",
             .type = Type::integer,
             .about = "what was not begun by then is rejected",
             .is_required = true},
            {.name = "was_there",
             .type = Type::boolean,
             .about = "this ticket had been accepted before, or it is that of an earlier proposal",
             .is_required = true},
            {.name = "proposed", .type = Type::any, .about = "of a decision: the first proposal of this journal"},
            {.name = "why", .about = "it is not in the store, for people", .is_required = true}}}};
}

void tell(const CallPtr& call, const Provisional& provisional) {
  boost::json::object body{{"provisional", true},
                           {"ticket", provisional.ticket},
                           {"kind", kind_of(provisional.wish)},
                           {"until_ms", ms(provisional.until)},
                           {"was_there", provisional.was_there},
                           {"why", provisional.why}};
  if (const auto* decide = std::get_if<DecideWish>(&provisional.wish)) body["proposed"] = json_from(decide->proposal);
  call->answer(202, body, "/v1/tickets/" + percent_encoded(provisional.ticket));
}

}  // namespace holdfast::serve
