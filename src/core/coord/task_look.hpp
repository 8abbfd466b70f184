#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/coord/read_procedure.hpp"
#include "core/coord/row_procedure.hpp"
#include "holdfast/coordination.hpp"

namespace holdfast {

/// What the row of a task, or of a key that is run once, says to who only looks. It may have changed since.
struct TaskView {
  enum class Kind { task, once };
  enum class State {
    free,    ///< nobody has it
    held,    ///< its lease runs
    ended,   ///< its lease has run out, by the clock of who looks, and nobody has taken it since
    done,    ///< once: it has been run, and its result stands
    failed,  ///< once: the same, and it failed for good
  };
  Kind kind = Kind::task;
  std::string name;
  State state = State::free;
  std::string owner;  ///< empty: nobody
  Epoch epoch;        ///< the latest there was
  WallTime expires_at{};
  std::optional<OnceResult> result;  ///< while it stands
};
[[nodiscard]] std::string_view to_string(TaskView::Kind kind);
[[nodiscard]] std::string_view to_string(TaskView::State state);
/// Nothing where the row is damaged, or of neither kind.
[[nodiscard]] std::optional<TaskView> task_in(const Row& row, WallTime now);
/// The row of this name.
[[nodiscard]] std::string task_key(TaskView::Kind kind, std::string_view name);

/// A task or a key as it is; nothing where there is none. Reads only.
class ReadTask final : public RowProcedure<std::optional<TaskView>> {
 public:
  ReadTask(TaskView::Kind kind, std::string_view name, Instant deadline, Random& random);

 private:
  [[nodiscard]] Plan plan(Now now) override;
};

struct TaskPage {
  std::vector<TaskView> tasks;         ///< those that end first come first
  std::string next;                    ///< of the next page; empty: there is none
  std::vector<std::string> damaged{};  ///< left out, as GroupList::damaged
};

/// What is held, or was and can be taken, of both kinds: a page of it. As the index tells it: it may be late, and
/// what is renewed between two pages may be on both, or on none.
class ListTasks final : public ReadProcedure<TaskPage> {
 public:
  /// `most`: rows, at least 1. `page`: empty, or the `next` of a page before; another is rejected, with Code::usage.
  ListTasks(std::size_t most, std::string page, Instant deadline, Random& random);

 private:
  [[nodiscard]] Ask read(Now now) override;
  void took(Answer answer, Now now) override;

  const std::size_t most_;
  const std::string page_;
};

struct ReleasedTask {
  TaskView task;
  bool was_repeat = false;  ///< nobody had it any more
};

/// Takes a lease away from whoever has it under this epoch, and no other: for a person who knows that nobody acts
/// under it any more. Refused where there is no such row (Code::not_found), or where another epoch has come
/// (Code::denied).
class ReleaseTask final : public RowProcedure<ReleasedTask> {
 public:
  ReleaseTask(TaskView::Kind kind, std::string name, Epoch epoch, Instant deadline, Random& random);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const std::string name_;
  const Epoch epoch_;
};

}  // namespace holdfast
