#include "coord/runner.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast::coord {

namespace {

std::vector<Row> rows_in(std::optional<Row>&& row) {
  std::vector<Row> rows;
  if (row) rows.push_back(*std::move(row));
  return rows;
}
std::vector<Row> rows_in(std::vector<Row>&& rows) {
  return std::move(rows);
}
std::vector<Row> rows_in(Page&& page) {
  return std::move(page.rows);
}

/// One that got lost is asked again while that is of use (S10).
constexpr Duration request_most = std::chrono::seconds(2);

Answer time_passed() {
  Answer answer;
  answer.outcome = Outcome::applied;
  return answer;
}

}  // namespace

Runner::Runner(Store& store, Loop& loop) : store_(store), loop_(loop) {}

Runner::~Runner() {
  for (auto& [id, run] : runs_) {
    if (run.timer != 0) loop_.cancel(run.timer);
  }
  if (listening_) store_.changes({});
}

Runner::Id Runner::run(std::unique_ptr<Procedure> procedure, std::function<void()> done, IsWanted is_wanted) {
  const Id id = ++last_id_;
  runs_.emplace(id, Run{std::move(procedure), std::move(done), std::move(is_wanted)});
  loop_.post([this, id, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) step(id);
  });
  return id;
}

void Runner::drop(Id id) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  if (found->second.timer != 0) loop_.cancel(found->second.timer);
  runs_.erase(found);
}

void Runner::step(Id id) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Run& run = found->second;
  if (std::optional<Ask> ask = run.procedure->next(loop_.now())) {
    return carry_out(id, *std::move(ask), run.procedure->deadline());
  }
  // Taken out first: `done` may begin others, or end us.
  const auto ended = runs_.extract(found);
  ended.mapped().done();
}

template <class Reply>
std::function<void(Reply)> Runner::answer_to(Id id) {
  return [this, id, alive = std::weak_ptr(alive_)](Reply reply) {
    if (alive.expired()) return;
    Answer answer;
    answer.outcome = reply.outcome;
    answer.error = std::move(reply.error);
    if constexpr (std::is_same_v<Reply, PageReply>) answer.next = std::move(reply.value.next);
    answer.rows = rows_in(std::move(reply.value));
    answered(id, std::move(answer));
  };
}

void Runner::carry_out(Id id, Ask ask, Instant end) {
  const Instant deadline = std::min(end, loop_.instant() + request_most);
  std::visit(
      [&](auto&& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, ReadRow>) {
          store_.get(std::move(what.key), deadline, answer_to<RowReply>(id));
        } else if constexpr (std::is_same_v<What, ReadRows>) {
          store_.batch_get(std::move(what.keys), deadline, answer_to<RowsReply>(id));
        } else if constexpr (std::is_same_v<What, WriteRow>) {
          store_.update(std::move(what.update), deadline, answer_to<RowReply>(id));
        } else if constexpr (std::is_same_v<What, WriteRows>) {
          store_.transact(std::move(what.updates), std::move(what.token), deadline, answer_to<RowsReply>(id));
        } else if constexpr (std::is_same_v<What, LookDue>) {
          store_.query_due(std::move(what.query), deadline, answer_to<PageReply>(id));
        } else {
          pause(id, what);
        }
      },
      std::move(ask));
}

void Runner::answered(Id id, Answer answer) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  found->second.procedure->on(std::move(answer), loop_.now());
  step(id);
}

void Runner::pause(Id id, const Pause& pause) {
  Run& run = runs_.at(id);
  run.woken_by_changes = pause.until_changed;
  if (pause.until_changed) listen();
  run.timer = loop_.call_at(pause.until, [this, id] {
    runs_.at(id).timer = 0;
    answered(id, time_passed());
  });
}

void Runner::listen() {
  // Where few can listen at once, that is for those who stay.
  if (listening_ || store_.capabilities().changes_need_reader) return;
  listening_ = true;
  store_.changes([this, alive = std::weak_ptr(alive_)](const Changed&) {
    if (!alive.expired()) changed();
  });
}

void Runner::changed() {
  wake([](const Run& run) { return run.woken_by_changes; });
}

void Runner::recheck() {
  wake([](const Run& run) { return run.is_wanted && !run.is_wanted(); });
}

void Runner::wake(const std::function<bool(const Run&)>& which) {
  std::vector<Id> woken;
  for (auto& [id, run] : runs_) {
    if (run.timer == 0 || !which(run)) continue;
    loop_.cancel(std::exchange(run.timer, 0));
    woken.push_back(id);
  }
  const std::weak_ptr alive(alive_);
  for (const Id id : woken) {
    if (!alive.expired()) answered(id, time_passed());  // one's end may be ours
  }
}

}  // namespace holdfast::coord
