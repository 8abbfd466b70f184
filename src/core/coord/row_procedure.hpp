#pragma once
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/coord/procedure.hpp"
#include "core/coord/tries.hpp"
#include "holdfast/random.hpp"

namespace holdfast {

/// What every operation on rows that are known beforehand does alike: reads them, has the rules say what to do with
/// them as they are, writes, and begins again with what a conflict shows. Throttled and unknown requests are tried
/// again until the deadline, with full jitter. An unknown write is settled by looking: its attempt is in the rows, or
/// the rules ask for it again, under the same attempt (S5).
class RowWork : public Procedure {
 public:
  /// One key: a conditional write. Several: a transaction, all or none. `is_wanted` is asked before each request; for
  /// procedures that only read: where it says no, it ends as busy.
  RowWork(std::vector<std::string> keys, Instant deadline, Random& random, IsWanted is_wanted = {});

  [[nodiscard]] std::optional<Ask> next(Now now) final;
  void on(Answer answer, Now now) final;
  [[nodiscard]] Instant deadline() const final { return tries_.deadline(); }
  [[nodiscard]] const std::string& key() const { return keys_.front(); }

 protected:
  struct Concluded {};
  using Verdict = std::variant<Concluded, std::vector<Update>, Pause, Failure>;
  /// What to do, with the rows as they are now.
  [[nodiscard]] virtual Verdict judge(Now now) = 0;
  virtual void fail(Failure failure) = 0;

  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }
  /// As it is now; null: there is none.
  [[nodiscard]] const Row* find(std::string_view key) const;
  /// Our write was applied. Of a transaction the rows may be newer than it, or missing (as transact() may tell them).
  [[nodiscard]] bool was_applied() const { return applied_; }
  /// A write of ours may have happened, although the rows do not show it (any more).
  [[nodiscard]] bool in_doubt() const { return tries_.in_doubt(); }
  [[nodiscard]] Random& random() { return random_; }
  /// The id of the write that this operation is about, the same in all its tries.
  [[nodiscard]] const Attempt& attempt() const { return attempt_; }

 private:
  enum class Waiting { nothing, reading, writing, pausing };

  [[nodiscard]] Verdict verdict_now(Now now);
  [[nodiscard]] Ask read();
  [[nodiscard]] Ask write(std::vector<Update> updates);
  void applied(Waiting what, std::vector<Row> rows);

  const std::vector<std::string> keys_;
  const IsWanted is_wanted_;
  Random& random_;
  const Attempt attempt_;
  Waiting waiting_ = Waiting::nothing;
  bool over_ = false;
  bool seen_ = false;     // rows_ is what they were a moment ago
  bool applied_ = false;  // the write that this is about
  std::vector<Row> rows_;
  std::vector<Update> latest_;  // transaction that was asked for
  unsigned transactions_ = 0;   // different ones
  Tries tries_;
};

/// One operation that comes down to one write on rows known beforehand. Derived classes are the rules of one
/// primitive: a function from the rows to the result, the write that would bring it about, or how long to wait.
template <class T>
class RowProcedure : public RowWork {
 public:
  RowProcedure(std::string key, Instant deadline, Random& random, IsWanted is_wanted = {})
      : RowWork(std::vector{std::move(key)}, deadline, random, std::move(is_wanted)) {}
  using RowWork::RowWork;

  /// There as soon as next() gives nothing.
  [[nodiscard]] const std::optional<Ended<T>>& result() const { return result_; }

 protected:
  using Plan = std::variant<T, std::vector<Update>, Pause, Failure>;
  /// The rules: pure.
  [[nodiscard]] virtual Plan plan(Now now) = 0;

 private:
  [[nodiscard]] Verdict judge(Now now) final {
    return std::visit(
        [this](auto step) -> Verdict {
          if constexpr (std::is_same_v<decltype(step), T>) {
            result_ = Ended<T>(std::move(step));
            return Concluded{};
          } else {
            return step;
          }
        },
        plan(now));
  }
  void fail(Failure failure) final { result_ = tl::unexpected(std::move(failure)); }

  std::optional<Ended<T>> result_;
};

}  // namespace holdfast
