#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/desk.hpp"

// What a caller asks of a right (a task's or a key's), and how one is handed to him.
namespace holdfast::serve {

[[nodiscard]] std::vector<Field> right_fields();
[[nodiscard]] Schema guard_schema();
/// As it is handed over.
[[nodiscard]] Schema acquired_schema();
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
/// Or the problem with it. `kind` and `name` as of its guard.
[[nodiscard]] tl::expected<Right, Problem> right_from(const Desk& desk, const Input& body, std::string_view kind,
                                                      std::string_view name);

/// A caller who waits for a right: he may hang up, or the server may stop, while it is on its way. One who names the
/// guard that he asks for may ask again while he waits or has it, on another connection: it is one right.
class Asking : public std::enable_shared_from_this<Asking> {
 public:
  /// Null: there are too many guards, the server stops, or he has asked before; it is answered then, or will be.
  [[nodiscard]] static std::shared_ptr<Asking> begin(Desk& desk, const CallPtr& call, const char* kind,
                                                     std::string name);
  [[nodiscard]] const GuardPtr& guard() const { return guard_; }
  /// He has neither hung up nor been answered.
  [[nodiscard]] bool is_wanted() const;

  /// It is here: handed over with what is to be told besides, or given back where nobody wants it any more.
  void got(std::shared_ptr<coord::Held> held, Duration hold_for, boost::json::object told);
  /// There is nothing to hold: that is the answer.
  void answer(int status, const boost::json::object& body);
  void fail(const Problem& problem);
  void fail(const Failure& failure) { fail(problem_of(failure)); }

 private:
  Asking(Desk& desk, GuardPtr guard) : desk_(desk), guard_(std::move(guard)), stops_(desk.stops()) {}
  /// False: he has not asked for it before.
  [[nodiscard]] static bool answer_repeat(Desk& desk, const CallPtr& call, const GuardPtr& guard, const char* kind,
                                          const std::string& name);
  void join(const CallPtr& call, Place place);
  /// Those who wait: they are answered now.
  [[nodiscard]] std::vector<CallPtr> take_calls();

  Desk& desk_;
  const GuardPtr guard_;
  const std::uint64_t stops_;
  std::vector<std::pair<Waiting::Id, CallPtr>> calls_;  // the first one first
};

}  // namespace holdfast::serve
