#include "core/coord/task_look.hpp"

#include <utility>

#include "core/coord/damage.hpp"
#include "core/coord/memory.hpp"
#include "core/coord/names.hpp"
#include "core/coord/once.hpp"
#include "core/coord/task.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

using Kind = TaskView::Kind;
using State = TaskView::State;

Failure refused(Code code, std::string why) {
  return {Failure::Kind::refused, Error(code, std::move(why))};
}

State state_of(const TaskView& task, WallTime now) {
  if (task.result) return task.result->succeeded ? State::done : State::failed;
  if (task.owner.empty()) return State::free;
  return task.expires_at > now ? State::held : State::ended;
}

}  // namespace

std::string_view to_string(Kind kind) {
  return kind == Kind::once ? "once" : "task";
}

std::string_view to_string(State state) {
  switch (state) {
    case State::free:
      return "free";
    case State::held:
      return "held";
    case State::ended:
      return "ended";
    case State::done:
      return "done";
    case State::failed:
      return "failed";
  }
  HOLDFAST_ASSERT(false, "every state has a name");
  return {};
}

std::string task_key(Kind kind, std::string_view name) {
  return kind == Kind::once ? LookOnce::row_key(name) : AwaitTask::row_key(name);
}

std::optional<TaskView> task_in(const Row& row, WallTime now) {
  TaskView task;
  if (row.key.starts_with(coord::once_prefix)) {
    task.kind = Kind::once;
  } else if (!row.key.starts_with(key_prefix::task)) {
    return std::nullopt;
  }
  const std::optional<Candidate> lease = lease_of(row);
  if (!lease || damage_in(row)) return std::nullopt;
  task.name = name_in(row.key);
  task.owner = lease->owner;
  task.epoch = lease->epoch;
  task.expires_at = lease->expires_at;
  if (task.kind == Kind::once) {
    if (!is_past_retention(row, now)) task.result = once_result_in(row);
  }
  task.state = state_of(task, now);
  return task;
}

// ---- ReadTask ----

ReadTask::ReadTask(Kind kind, std::string_view name, Instant deadline, Random& random)
    : RowProcedure(task_key(kind, name), deadline, random) {}

ReadTask::Plan ReadTask::plan(Now now) {
  const Row* row = find(key());
  if (row == nullptr) return std::optional<TaskView>();
  std::optional<TaskView> task = task_in(*row, now.wall);
  if (!task) return damaged_row(*row);
  return task;
}

// ---- ListTasks ----

ListTasks::ListTasks(std::size_t most, std::string page, Instant deadline, Random& random)
    : ReadProcedure(deadline, random), most_(most), page_(std::move(page)) {
  HOLDFAST_ASSERT(most >= 1, "a page has room");
}

Ask ListTasks::read(Now) {
  QueryDue query;
  query.state = state::task;
  query.before = WallTime::max();
  query.limit = most_;
  query.page = page_;
  return LookDue{std::move(query)};
}

void ListTasks::took(Answer answer, Now now) {
  TaskPage page;
  LeftOut left_out;
  left_out.add(answer);
  for (const Row& row : answer.rows) {
    if (auto task = task_in(row, now.wall)) {
      page.tasks.push_back(*std::move(task));
    } else {
      left_out.add(row);
    }
  }
  page.damaged = left_out.rows();
  page.next = std::move(answer.next);
  conclude(std::move(page));
}

// ---- ReleaseTask ----

ReleaseTask::ReleaseTask(Kind kind, std::string name, Epoch epoch, Instant deadline, Random& random)
    : RowProcedure(task_key(kind, name), deadline, random), name_(std::move(name)), epoch_(epoch) {}

ReleaseTask::Plan ReleaseTask::plan(Now now) {
  const Row* row = find(key());
  if (row == nullptr) return refused(Code::not_found, "Nothing is called " + name_ + ".");
  std::optional<TaskView> task = task_in(*row, now.wall);
  if (!task) return damaged_row(*row);
  if (row->text(attribute::attempt) == attempt().to_string()) return ReleasedTask{*std::move(task)};
  if (task->epoch != epoch_) {
    return refused(Code::denied, "The lease on " + name_ + " has epoch " + std::to_string(task->epoch.value) +
                                     " by now, not " + std::to_string(epoch_.value) + ": it was left alone.");
  }
  if (task->owner.empty()) return ReleasedTask{*std::move(task), true};
  return std::vector{
      Update{key(),
             {Change::remove(attribute::owner), Change::set(attribute::expires_at, std::int64_t{0}),
              Change::set(attribute::attempt, attempt().to_string())},
             Condition::equals(attribute::owner, task->owner) && Condition::equals(attribute::epoch, epoch_.value)}};
}

}  // namespace holdfast
