#pragma once
#include <optional>
#include <utility>

#include "core/coord/procedure.hpp"
#include "core/coord/tries.hpp"

namespace holdfast {

/// What every operation does alike that only reads, in several steps: what throttled or unknown requests are asked is
/// asked again until the deadline, with full jitter; a rejected one ends it, and so does a damaged row among those
/// that were asked for by their keys.
class ReadWork : public Procedure {
 public:
  ReadWork(Instant deadline, Random& random) : tries_(deadline, random) {}

  [[nodiscard]] std::optional<Ask> next(Now now) override;
  void on(Answer answer, Now now) override;
  [[nodiscard]] Instant deadline() const final { return tries_.deadline(); }

 protected:
  /// The request of this step, the same as often as it is asked for.
  [[nodiscard]] virtual Ask read(Now now) = 0;
  /// What it was answered: the next step, or the end.
  virtual void took(Answer answer, Now now) = 0;
  [[nodiscard]] virtual bool is_over() const = 0;
  virtual void fail(Failure failure) = 0;

 private:
  Tries tries_;
  bool pausing_ = false;
  bool reads_rows_ = false;  // that are known by their keys
};

/// One such operation. Derived classes are its steps, and conclude() ends it.
template <class T>
class ReadProcedure : public ReadWork {
 public:
  using ReadWork::ReadWork;

  /// There as soon as next() gives nothing.
  [[nodiscard]] const std::optional<Ended<T>>& result() const { return result_; }

 protected:
  void conclude(T result) { result_ = Ended<T>(std::move(result)); }
  [[nodiscard]] bool is_over() const final { return result_.has_value(); }
  void fail(Failure failure) final { result_ = tl::unexpected(std::move(failure)); }

 private:
  std::optional<Ended<T>> result_;
};

}  // namespace holdfast
