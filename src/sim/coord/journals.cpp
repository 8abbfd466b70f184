#include "sim/coord/journals.hpp"

#include <filesystem>
#include <utility>

#include "core/coord/counter.hpp"
#include "core/coord/names.hpp"
#include "holdfast/assert.hpp"

namespace holdfast::sim::coordinated {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t tickets_most = 40;

/// A folder of its own in memory, where there is such a place: nothing here is to outlive the process.
std::string new_folder() {
  std::error_code error;
  const bool in_memory = std::filesystem::is_directory("/dev/shm", error);
  std::string name = (in_memory ? std::string("/dev/shm") : std::filesystem::temp_directory_path().string()) +
                     "/holdfast-sim-XXXXXX";
  HOLDFAST_ASSERT(::mkdtemp(name.data()) != nullptr, "a folder can be made for journals");
  return name;
}

}  // namespace

/// What a process has open of its machine's journal.
struct Journals::Desk {
  std::unique_ptr<coord::Journal> journal;
  std::unique_ptr<coord::Available> available;
  bool reconciles = false;     // one pass at a time
  bool waits_in_vain = false;  // for a compensation that hangs
};

Journals::Journals(Stage& stage, Others others, std::size_t machines)
    : Scene(stage), others_(others), quotas_(machines), settled_(machines) {}

Journals::~Journals() {
  std::error_code error;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
}

std::string Journals::path_of(std::size_t machine) const {
  return folder_ + "/" + std::to_string(machine) + ".journal";
}

Journals::Desk* Journals::desk(Node& node) {
  if (!node.extra) {
    if (folder_.empty()) folder_ = new_folder();
    auto desk = std::make_shared<Desk>();
    coord::JournalOptions where;
    where.path = path_of(node.machine());
    auto opened = coord::Journal::open(std::move(where));
    if (!opened) {
      stage_.broken("S10", "the journal cannot be opened: " + opened.error().detail, -1);
      return nullptr;
    }
    desk->journal = *std::move(opened);
    coord::AvailableOptions options;
    options.max_provisional = tickets_most;
    options.max_age = 8 * stage_.terms().lease;
    options.patience = stage_.terms().lease / 4;
    options.proposer = "n" + std::to_string(node.number());
    desk->available =
        std::make_unique<coord::Available>(*desk->journal, node.store(), node.loop(), std::move(options));
    node.extra = desk;
  }
  return static_cast<Desk*>(node.extra.get());
}

void Journals::act(Node& node) {
  if (stage_.at_the_end) return reconcile(node);
  switch (node.random().below(8)) {
    case 0:
      return set_aside(node);
    case 1:
    case 2:
      return sell(node);
    case 3:
    case 4:
      return reconcile(node);
    default:
      return accept(node);
  }
}

std::string Journals::new_ticket(Node& node, Wish wish) {
  std::string name = "j" + std::to_string(tickets_.size());
  tickets_[name] = {.machine = node.machine(), .wish = std::move(wish)};
  return name;
}

void Journals::accept(Node& node) {
  Desk* const desk = this->desk(node);
  if (desk == nullptr) return;
  Random& random = node.random();
  // The same ticket again: its caller was killed before it heard.
  std::string again;
  if (!tickets_.empty() && random.below(4) == 0) {
    const std::size_t recent = std::min<std::size_t>(tickets_.size(), 5);
    again = "j" + std::to_string(tickets_.size() - 1 - random.below(recent));
    if (tickets_[again].machine != node.machine()) again.clear();
  }
  const std::string of_machine = std::to_string(node.machine());
  const std::uint64_t kind = random.below(3);
  std::string ticket = again;
  if (ticket.empty()) {
    Wish wish = DecideWish{"j" + std::to_string(tickets_.size() / 4), "by " + of_machine, {}};
    if (kind == 1) wish = AddWish{"j" + of_machine, static_cast<std::int64_t>(random.below(7)) - 3, 0};
    if (kind == 2) wish = SendWish{"plain", "j" + of_machine, {}, 0ms};
    ticket = new_ticket(node, std::move(wish));
    if (auto* sent = std::get_if<SendWish>(&tickets_[ticket].wish)) sent->body = "body of " + ticket;
  }
  const Wish wish = tickets_[ticket].wish;
  if (std::holds_alternative<DrawWish>(wish)) return;
  node.begin();
  stage_.calls(node.number(), subject(Kind::ticket, std::stoul(ticket.substr(1))), Verb::accept);
  if (const auto* decide = std::get_if<DecideWish>(&wish)) {
    desk->available->decide(decide->key, decide->proposal, ticket,
                            [this, &node, ticket](const auto& ended) { accepted<Decided>(node, ticket, ended); });
  } else if (const auto* add = std::get_if<AddWish>(&wish)) {
    desk->available->add(*add, ticket,
                         [this, &node, ticket](const auto& ended) { accepted<Added>(node, ticket, ended); });
  } else {
    desk->available->send(std::get<SendWish>(wish), ticket,
                          [this, &node, ticket](const auto& ended) { accepted<Sent>(node, ticket, ended); });
  }
}

template <class T>
void Journals::accepted(Node& node, const std::string& ticket, const Ended<Accepted<T>>& ended) {
  Ticket& known = tickets_[ticket];
  const bool is_provisional = ended && std::holds_alternative<Provisional>(*ended);
  const std::int32_t about = subject(Kind::ticket, std::stoul(ticket.substr(1)));
  stage_.hears(node.number(), about, Verb::accept, is_provisional ? How::provisional : how(ended));
  if (is_provisional) {
    const auto& provisional = std::get<Provisional>(*ended);
    // Of a decision another proposal of this machine may stand there already.
    if (provisional.ticket == ticket) known.provisional = true;
    stage_.world.marks.hit(Mark::ticket_provisional);
  } else if (ended) {
    known.committed = true;
    if (!std::is_same_v<T, Decided> && !has_happened(ticket, known.wish)) {
      stage_.broken("S5", "its caller is told that it is in the store, and it is not", about);
    }
  } else if (ended.error().kind == Failure::Kind::refused) {
    known.refused = true;
  }
  node.end();
}

// ---- Goods ----

void Journals::sell(Node& node) {
  Desk* const desk = this->desk(node);
  if (desk == nullptr) return;
  const Basket basket{
      {"s90" + std::to_string(node.machine()), 1 + static_cast<std::int64_t>(node.random().below(2))}};
  const std::string ticket = new_ticket(node, DrawWish{basket, {}});
  const auto sold = desk->available->sell(basket, ticket);
  stage_.hears(node.number(), subject(Kind::ticket, std::stoul(ticket.substr(1))), Verb::accept,
               sold ? How::provisional : how(sold));
  tickets_[ticket].provisional = sold.has_value();
  if (sold) stage_.world.marks.hit(Mark::sold_from_quota);
}

/// Goods come in and are set aside; or no more is to be sold of them.
void Journals::set_aside(Node& node) {
  Desk* const desk = this->desk(node);
  if (desk == nullptr) return;
  std::string& quota = quotas_[node.machine()];
  if (!quota.empty() && node.random().below(2) == 0) {
    const auto closed = desk->available->give_back(quota);
    stage_.hears(node.number(), -1, Verb::set_aside, closed && *closed ? How::done : How::nothing);
    quota.clear();
    return;
  }
  node.begin();
  const std::string sku = "s90" + std::to_string(node.machine());
  AddOptions options;
  options.to = AddOptions::To::stock;
  options.key = sku;
  options.delta = 6;
  options.op_id =
      "quota" + std::to_string(node.machine()) + "-" + std::to_string(stage_.world.now().time_since_epoch().count());
  const std::string id = options.op_id;
  quota = id;
  const Duration lease = stage_.terms().lease;
  stage_.calls(node.number(), -1, Verb::set_aside);
  auto add = std::make_unique<Add>(std::move(options), node.own_now() + lease, node.loop().random());
  node.coordinator().run(std::move(add), [this, &node, desk, sku, id, lease](const Ended<Added>& added) {
    if (!added) return node.end();
    desk->available->set_aside(id, {{sku, 5}}, 30 * lease, [this, &node](const Ended<Quota>& ended) {
      stage_.hears(node.number(), -1, Verb::set_aside, how(ended));
      node.end();
    });
  });
}

// ---- Settling ----

void Journals::reconcile(Node& node) {
  Desk* const desk = this->desk(node);
  if (desk == nullptr || desk->reconciles) return;
  coord::ReconcileOptions options;
  options.patience = stage_.terms().lease / 4;
  options.compensation_limit = stage_.terms().lease / 2;
  if (stage_.at_the_end || node.random().below(3) != 0) {
    options.compensate = [this, &node](const Intent& rejected, bool is_repeat,
                                       std::function<void(holdfast::Result<void>)> done) {
      compensate(node, rejected, is_repeat, std::move(done));
    };
  }
  node.begin();
  desk->reconciles = true;
  stage_.calls(node.number(), -1, Verb::reconcile);
  desk->available->reconcile(std::move(options), [this, &node, desk](const Ended<ReconcileReport>& ended) {
    desk->reconciles = false;
    if (std::exchange(desk->waits_in_vain, false)) stage_.world.marks.hit(Mark::compensation_given_up);
    stage_.hears(node.number(), -1, Verb::reconcile, how(ended),
                 ended ? static_cast<std::int64_t>(ended->confirmed + ended->rejected) : 0);
    if (!ended && ended.error().kind != Failure::Kind::busy) {
      stage_.broken("S10", "the journal fails: " + ended.error().error.detail, -1);
    }
    if (ended && ended->is_all() && stage_.at_the_end) settled_[node.machine()] = true;
    // What it says is final is so from now on.
    const auto all = desk->journal->list(coord::Journal::Which::all, 0, 10'000);
    for (const Intent& intent : all ? *all : std::vector<Intent>()) {
      if (intent.is_settled()) judge(intent);
    }
    node.end();
  });
}

void Journals::compensate(Node& node, const Intent& rejected, bool is_repeat,
                          std::function<void(holdfast::Result<void>)> done) {
  Ticket& known = tickets_[rejected.ticket];
  const std::int32_t about = subject(Kind::ticket, std::stoul(rejected.ticket.substr(1)));
  stage_.calls(node.number(), about, Verb::compensate);
  if (is_repeat != (known.compensations_begun > 0)) {
    stage_.broken("F29", "its compensation is not told rightly whether it had begun before", about);
  }
  if (is_repeat) stage_.world.marks.hit(Mark::compensation_repeated);
  ++known.compensations_begun;
  // One that hangs is ended by whoever runs it, and nobody hears of it again.
  if (!stage_.at_the_end && node.random().below(8) == 0) {
    desk(node)->waits_in_vain = true;
    return;
  }
  const Duration time = node.random().between(0ms, stage_.terms().lease / 4);
  const bool fails = !stage_.at_the_end && node.random().below(5) == 0;
  const std::string ticket = rejected.ticket;
  node.loop().call_after(time, [this, number = node.number(), ticket, about, fails, done = std::move(done)] {
    stage_.hears(number, about, Verb::compensate, fails ? How::unavailable : How::done);
    if (fails) return done(fail(Code::unavailable, "it did not work"));
    ++tickets_[ticket].compensations_done;
    stage_.world.marks.hit(Mark::compensated);
    done({});
  });
}

bool Journals::has_happened(const std::string& ticket, const Wish& wish) const {
  if (const auto* add = std::get_if<AddWish>(&wish)) {
    return others_.counters.happened(operation_key(Add::row_key(AddOptions::To::counter, add->key), ticket));
  }
  if (const auto* send = std::get_if<SendWish>(&wish)) return others_.queues.was_sent(send->queue, ticket);
  if (std::holds_alternative<DrawWish>(wish)) {
    return others_.stocks.state_of(ticket) == Reservation::State::confirmed;
  }
  const Row* const row = others_.decisions.decided(std::get<DecideWish>(wish).key);
  return row != nullptr && row->text(coord::proposer).ends_with("#" + ticket);
}

/// Confirmed: it has happened. Rejected: it has not, and whatever is still on its way finds its place taken.
void Journals::judge(const Intent& intent) {
  const std::int32_t about = subject(Kind::ticket, std::stoul(intent.ticket.substr(1)));
  const bool happened = has_happened(intent.ticket, intent.wish);
  const bool is_confirmed = intent.state == Intent::State::confirmed;
  if (const auto* decide = std::get_if<DecideWish>(&intent.wish); is_confirmed && decide != nullptr) {
    // By whomever: the same value is as good.
    const Row* const row = others_.decisions.decided(decide->key);
    const Value* const value = row == nullptr ? nullptr : row->find(coord::value);
    if (value == nullptr || !(*value == decide->proposal)) {
      stage_.broken("S5", "it is confirmed, and something else was decided", about);
    }
    return;
  }
  if (is_confirmed && !happened) stage_.broken("S5", "it is confirmed, and has not happened", about);
  if (!is_confirmed && happened)
    stage_.broken(
        "F29", "it is rejected (" + intent.note + "), and has happened: " + std::string(kind_of(intent.wish)), about);
  const Ticket& known = tickets_[intent.ticket];
  if (!is_confirmed && known.committed && !std::holds_alternative<DecideWish>(intent.wish)) {
    stage_.broken("S5", "it is rejected although its caller was told that it is in the store", about);
  }
}

std::string Journals::left() {
  for (std::size_t machine = 0; machine < settled_.size(); ++machine) {
    if (!settled_[machine]) return "the journal of machine " + std::to_string(machine) + " is not settled";
  }
  return {};
}

void Journals::judge() {
  std::map<std::string, Intent> all;
  for (std::size_t machine = 0; machine < settled_.size() && !folder_.empty(); ++machine) {
    coord::JournalOptions where;
    where.path = path_of(machine);
    const auto journal = coord::Journal::open(std::move(where));
    const auto unreadable = [this](const Error& why) {
      stage_.broken("S10", "a journal cannot be read: " + why.detail, -1);
    };
    if (!journal) return unreadable(journal.error());
    const auto there = (*journal)->list(coord::Journal::Which::all, 0, 10'000);
    if (!there) return unreadable(there.error().error);
    for (const Intent& intent : *there) all[intent.ticket] = intent;
  }
  for (const auto& [name, ticket] : tickets_) {
    const std::int32_t about = subject(Kind::ticket, std::stoul(name.substr(1)));
    const auto found = all.find(name);
    if (found == all.end()) {
      if (ticket.provisional) stage_.broken("S5", "it was accepted, and the journal does not know it", about);
      continue;
    }
    const Intent& intent = found->second;
    if (!intent.is_over())
      stage_.broken("liveness", "it is not settled: " + std::string(to_string(intent.state)), about);
    judge(intent);
    stage_.world.marks.hit(intent.state == Intent::State::confirmed ? Mark::ticket_confirmed : Mark::ticket_rejected);
    const std::size_t expected = intent.state == Intent::State::rejected ? 1 : 0;
    if (ticket.compensations_done != expected) {
      stage_.broken("F29", "its compensation was carried out " + std::to_string(ticket.compensations_done) + " times",
                    about);
    }
  }
}

}  // namespace holdfast::sim::coordinated
