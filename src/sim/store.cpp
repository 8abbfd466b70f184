#include "sim/store.hpp"

#include <utility>

namespace holdfast::sim {

using store::Answer;
using store::Operation;
using store::Request;

struct SimStore::Flight {
  std::shared_ptr<Operation> operation;
  std::shared_ptr<SimTable> table;
  std::shared_ptr<const Hooks> hooks;
  Origin origin;
  Fate fate;
  Loop* world = nullptr;
  SimStore* store = nullptr;             // null: it has died, or this was answered
  std::list<FlightPtr>::iterator place;  // in the store's list, while there is one
  TimerId deadline = 0;
  Answer answer;   // on its way back
  RowsReply rows;  // of a batch that is read in several goes: those of the earlier ones

  [[nodiscard]] Answer broken(const char* why) const {
    return operation->failure(Outcome::unknown, {Code::unavailable, why});
  }
  [[nodiscard]] Answer carry_out(bool again) const {
    Origin from = origin;
    from.again = again;
    return table->execute(operation->request, from, world->now());
  }
  [[nodiscard]] bool reaches_the_table() const { return !hooks->reachable || hooks->reachable(); }
};

SimStore::SimStore(std::shared_ptr<SimTable> table, Loop& own, Loop& world, std::int16_t process, Hooks hooks,
                   bool feed, SimStream* stream)
    : RequestStore(own),
      table_(std::move(table)),
      own_(own),
      world_(world),
      process_(process),
      hooks_(std::make_shared<const Hooks>(std::move(hooks))),
      stream_(stream) {
  if (!feed && stream_ == nullptr) return;
  feed_ = std::make_shared<store::ChangeFeed>(own);
  if (stream_ != nullptr) return;
  table_->memory().subscribe(*feed_);
}

SimStore::~SimStore() {
  if (feed_ && stream_ == nullptr) table_->memory().unsubscribe(*feed_);
  for (const FlightPtr& flight : flights_) {
    own_.cancel(flight->deadline);
    flight->store = nullptr;
  }
}

void SimStore::changes(ChangeListener listener) {
  if (!feed_) return;
  const bool ends = listener == nullptr;
  feed_->listen(std::move(listener));
  if (stream_ == nullptr) return;
  reader_ = ends ? nullptr : stream_->read(feed_, hooks_->reachable);
}

Capabilities SimStore::capabilities() const {
  return {.name = "simulated",
          .transactions = true,
          .changes = stream_ != nullptr ? stream_->on() : feed_ != nullptr,
          .changes_need_reader = stream_ != nullptr,
          .no_changes = stream_ != nullptr && !stream_->on() ? "the stream is off" : "",
          .index_is_consistent = !table_->index_lags(),
          .returns_row_on_conflict = true};
}

void SimStore::submit(std::shared_ptr<Operation> operation) {
  auto flight = std::make_shared<Flight>();
  flight->operation = std::move(operation);
  flight->table = table_;
  flight->hooks = hooks_;
  flight->origin = {process_, own_.instant(), world_.instant(), false};
  flight->world = &world_;
  flight->store = this;
  if (hooks_->asked) hooks_->asked(flight->operation->request);
  if (hooks_->judge) flight->fate = hooks_->judge(flight->operation->request);
  flight->place = flights_.insert(flights_.end(), flight);
  // In the list for as long as this timer is set.
  flight->deadline = own_.call_at(flight->operation->deadline, [this, &late = *flight] {
    late.deadline = 0;
    finish(late, late.broken("timed out"));
  });
  if (flight->fate.kind == Fate::Kind::lost) return;
  const Duration there = flight->fate.there;
  world_.call_after(there, [flight = std::move(flight)] { arrive(flight); });
}

void SimStore::arrive(const FlightPtr& flight) {
  const Fate& fate = flight->fate;
  switch (fate.kind) {
    case Fate::Kind::throttled:
      return send_back(flight, flight->operation->failure(Outcome::throttled, {Code::unavailable, "too busy"}));
    case Fate::Kind::rejected:
      return send_back(flight, flight->operation->failure(Outcome::rejected, {Code::denied, "not permitted"}));
    case Fate::Kind::lost:
      return;
    case Fate::Kind::broken:
      return send_back(flight, flight->broken("connection refused"));
    case Fate::Kind::carried_out:
      break;
  }
  if (!flight->reaches_the_table()) return;
  if (fate.goes > 1 && std::holds_alternative<store::BatchGet>(flight->operation->request)) {
    return read_in_goes(flight, 0);
  }
  if (fate.again) flight->world->call_after(*fate.again, [flight] { arrive_again(flight); });
  Answer answer = flight->carry_out(false);
  if (fate.answer_lost) return;
  if (fate.answer_broken) answer = flight->broken("HTTP 500");
  send_back(flight, std::move(answer));
}

void SimStore::arrive_again(const FlightPtr& flight) {
  if (flight->reaches_the_table()) (void)flight->carry_out(true);
}

/// DynamoDB's UnprocessedKeys: each go reads its part of the rows as they are then, so that together they are of no
/// one moment. Between two of them the answer travels, and the rest of the request.
void SimStore::read_in_goes(const FlightPtr& flight, std::size_t done) {
  if (!flight->reaches_the_table()) return;
  const auto& keys = std::get<store::BatchGet>(flight->operation->request).keys;
  const std::size_t goes = flight->fate.goes;
  const auto place = [&](std::size_t go) { return static_cast<std::ptrdiff_t>(keys.size() * go / goes); };
  store::BatchGet part{{keys.begin() + place(done), keys.begin() + place(done + 1)}};
  auto read = std::get<RowsReply>(flight->table->execute(std::move(part), flight->origin, flight->world->now()));
  for (Row& row : read.value) flight->rows.value.push_back(std::move(row));
  if (done + 1 < goes) {
    flight->world->call_after(flight->fate.back + flight->fate.there,
                              [flight, done] { read_in_goes(flight, done + 1); });
    return;
  }
  flight->rows.outcome = Outcome::applied;
  send_back(flight, std::move(flight->rows));
}

void SimStore::send_back(const FlightPtr& flight, Answer&& answer) {
  if (flight->store == nullptr) {  // nobody waits for it any more
    if (flight->hooks->answered) flight->hooks->answered(flight->operation->request, answer, true);
    return;
  }
  flight->answer = std::move(answer);
  flight->store->own_.call_after(flight->fate.back, [flight] {
    if (flight->store != nullptr) return flight->store->finish(*flight, std::move(flight->answer));
    if (flight->hooks->answered) flight->hooks->answered(flight->operation->request, flight->answer, true);
  });
}

void SimStore::finish(Flight& flight, Answer&& answer) {
  own_.cancel(std::exchange(flight.deadline, 0));
  flight.store = nullptr;
  if (hooks_->answered) hooks_->answered(flight.operation->request, answer, false);
  const FlightPtr keep = std::move(*flight.place);
  flights_.erase(flight.place);
  keep->operation->respond(std::move(answer));
}

void SimStore::shut(std::function<void()> done) {
  if (feed_) feed_->listen(nullptr);
  reader_.reset();
  own_.post([this, done = std::move(done)] {
    while (!flights_.empty()) {
      Flight& flight = *flights_.front();
      finish(flight, flight.broken("the store was closed"));
    }
    done();
  });
}

}  // namespace holdfast::sim
