#include "worker/change_watch.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::worker {
namespace {

constexpr std::size_t peers_per_page = 200;
constexpr std::size_t peers_max = 2000;

}  // namespace

ChangeWatch::ChangeWatch(ChangeWatchOptions options, Loop& loop, Store& store, runtime::Log& log,
                         std::function<void()> look)
    : options_(std::move(options)), loop_(loop), store_(store), log_(log), look_(std::move(look)) {}

ChangeWatch::~ChangeWatch() {
  if (timer_ != 0) loop_.cancel(timer_);
  if (options_.net != nullptr) options_.net->receive({});
  store_.changes(nullptr);
}

void ChangeWatch::start() {
  auto listen = [this] {
    store_.changes([this, alive = std::weak_ptr<bool>(alive_)](const Changed& some) {
      if (!alive.expired()) changed(some);
    });
  };
  const Capabilities can = store_.capabilities();
  if (!can.changes_need_reader) {
    if (can.changes) listen();
    return;
  }
  if (options_.net == nullptr) return;  // looking at the usual pace is all there is
  options_.net->receive([this](std::string_view text) { heard(text); });
  lease_ = std::make_unique<FeedLease>(options_.owner, options_.terms, loop_, store_, log_,
                                       FeedLease::Events{[this, listen] {
                                                           ++counts_.reads;
                                                           listen();
                                                         },
                                                         [this] { store_.changes(nullptr); }});
  lease_->start();
}

void ChangeWatch::changed(const Changed& some) {
  if (over_) return;
  ++counts_.changes;
  if (!lease_) return look_();
  if (!lease_->holds()) return;  // S7: somebody else may read by now
  const Capabilities can = store_.capabilities();
  if (!can.changes && !can.no_changes.empty() && !std::exchange(told_no_feed_, true)) log_.warning(can.no_changes);
  if (can.changes) told_no_feed_ = false;
  look_();
  poke_later(some.rows);
}

void ChangeWatch::heard(std::string_view text) {
  if (over_) return;
  const std::optional<Poke> poke = read_poke(text, options_.token);
  if (!poke) {
    ++counts_.pokes_refused;
    return;
  }
  ++counts_.pokes_heard;
  look_();
  if (*poke == Poke::feed && lease_) lease_->seek_soon();
}

// Whom to tell.

void ChangeWatch::poke_later(std::size_t rows) {
  rows_ = rows_ > Changed::any - rows ? Changed::any : rows_ + rows;
  if (timer_ != 0 || asking_) return;
  const Instant now = loop_.instant();
  const Instant due = said_ == Instant::min() ? now : std::max(now, said_ + pause);
  if (due == now) return poke_now();
  timer_ = loop_.call_at(due, [this] {
    timer_ = 0;
    poke_now();
  });
}

void ChangeWatch::poke_now() {
  if (over_ || asking_ || rows_ == 0) return;
  const Instant now = loop_.instant();
  if (peers_known_since_ && now - *peers_known_since_ < options_.terms.lease / 2) return send_to_some();
  asking_ = true;
  ask_for_peers({}, {});
}

/// Workers whose session has not ended.
void ChangeWatch::ask_for_peers(std::string page, std::vector<Peer> so_far) {
  QueryDue query;
  query.state = state::worker;
  query.from = loop_.wall();
  query.before = WallTime::max();
  query.limit = peers_per_page;
  query.page = std::move(page);
  store_.query_due(std::move(query), loop_.instant() + std::chrono::seconds(1),
                   [this, alive = std::weak_ptr<bool>(alive_), so_far = std::move(so_far)](PageReply reply) mutable {
                     if (!alive.expired() && !over_) take_peers(std::move(reply), std::move(so_far));
                   });
}

void ChangeWatch::take_peers(PageReply reply, std::vector<Peer> so_far) {
  if (reply.ok()) {
    for (const Row& row : reply.value.rows) {
      auto address = parse_poke_address(row.text(attribute::address));
      if (!address || address->token == options_.token) continue;
      const Value* draining = row.find(attribute::draining);
      const bool stays = draining == nullptr || draining->as_bool() == nullptr || !*draining->as_bool();
      const bool has_room = stays && row.number(attribute::held) < row.number(attribute::capacity);
      so_far.push_back({*std::move(address), has_room});
    }
    if (!reply.value.next.empty() && so_far.size() < peers_max)
      return ask_for_peers(std::move(reply.value.next), std::move(so_far));
    peers_ = std::move(so_far);
  }
  // Where the table does not say, those who were there before are told.
  peers_known_since_ = loop_.instant();
  asking_ = false;
  send_to_some();
}

void ChangeWatch::send_to_some() {
  const std::size_t rows = std::exchange(rows_, 0);
  if (rows == 0 || !reads()) return;
  said_ = loop_.instant();
  std::vector<const Peer*> with_room;
  for (const Peer& peer : peers_) {
    if (peer.has_room) with_room.push_back(&peer);
  }
  const std::size_t wanted = rows < pokes_max ? rows + spare_pokes : pokes_max;
  const std::size_t count = std::min({wanted, with_room.size(), pokes_max});
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(with_room[i], with_room[i + loop_.random().below(with_room.size() - i)]);
    send(*with_room[i], Poke::rows);
  }
}

void ChangeWatch::send(const Peer& peer, Poke poke) {
  ++counts_.pokes_sent;
  options_.net->send(peer.address.place, poke_text(poke, peer.address.token));
}

// The end.

void ChangeWatch::drain() {
  if (!lease_) return store_.changes(nullptr);
  lease_->seek_no_more();
  // For the goodbye; it may have had nothing to say until now.
  if (reads() && !std::exchange(asking_, true)) ask_for_peers({}, {});
}

void ChangeWatch::finish(Instant deadline, std::function<void()> done) {
  if (!lease_) return done();
  const bool was_reader = reads();
  lease_->finish(deadline, [this, was_reader, done = std::move(done)] {
    // One of them takes over at once, and what was given back last, which nobody has read of, is found by looking.
    std::size_t told = 0;
    for (const Peer& peer : peers_) {
      if (was_reader && told++ < pokes_max) send(peer, Poke::feed);
    }
    done();
  });
}

void ChangeWatch::abandon() {
  if (std::exchange(over_, true)) return;
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  if (options_.net != nullptr) options_.net->receive({});
  if (lease_) lease_->abandon();
  store_.changes(nullptr);
}

}  // namespace holdfast::worker
