#pragma once
#include <functional>
#include <memory>

#include "serve/desk.hpp"

// What a caller asks of a right (a task's or a key's), and how one is handed to him.
namespace holdfast::serve {

[[nodiscard]] std::vector<Field> right_fields();
[[nodiscard]] Schema guard_schema();
/// Of what was run once.
[[nodiscard]] Schema result_schema();
[[nodiscard]] boost::json::object result_json(const OnceResult& result);
[[nodiscard]] boost::json::object guard_json(const Desk& desk, const Guard& guard);
/// Of one that is over.
[[nodiscard]] Problem gone(const Guard& guard);

struct Right {
  coord::TaskOptions options;
  Duration hold_for{};
};
/// Or the problem with it.
[[nodiscard]] tl::expected<Right, Problem> right_from(const Desk& desk, const Input& body);

/// A caller who waits for a right: he may hang up, or the server may stop, while it is on its way.
class Asking : public std::enable_shared_from_this<Asking> {
 public:
  /// Null: there are too many guards, or the server stops; it is answered then.
  [[nodiscard]] static std::shared_ptr<Asking> begin(Desk& desk, const CallPtr& call, const char* kind,
                                                     std::string name);
  [[nodiscard]] const GuardPtr& guard() const { return guard_; }
  /// He has neither hung up nor been answered.
  [[nodiscard]] bool is_wanted() const { return desk_.waiting.has(waiting_); }

  /// It is here: handed over with `status`, or given back where nobody wants it any more.
  void got(std::shared_ptr<coord::Held> held, Duration hold_for, int status, boost::json::object body);
  /// There is nothing to hold: that is the answer.
  void answer(int status, const boost::json::object& body);
  void fail(const Failure& failure);

 private:
  Asking(Desk& desk, CallPtr call, GuardPtr guard)
      : desk_(desk), call_(std::move(call)), guard_(std::move(guard)), stops_(desk.stops()) {}
  Desk& desk_;
  const CallPtr call_;
  const GuardPtr guard_;
  const std::uint64_t stops_;
  Waiting::Id waiting_ = 0;
};

}  // namespace holdfast::serve
