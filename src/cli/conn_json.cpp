#include "cli/conn_json.hpp"

#include "store/json.hpp"

namespace holdfast::cli {

std::string connection_json(const Row& row, WallTime now, bool with_options) {
  static constexpr std::string_view lease_names[] = {"free", "held", "expired"};
  const ConnectionView view = view_of(row, now);
  Attributes object;
  object.emplace("id", view.id);
  object.emplace("desired_state", view.desired_state);
  object.emplace("url", view.url);
  object.emplace("owner", view.owner.empty() ? Value(nullptr) : Value(view.owner));
  object.emplace("epoch", view.epoch);
  object.emplace("lease", lease_names[static_cast<std::size_t>(view.lease)]);
  object.emplace("expires_at_ms", view.expires_at_ms);
  object.emplace("last_seq", view.last_seq);
  const bool held = view.lease == ConnectionView::Lease::held;  // else nobody knows how it is (F42)
  object.emplace("status", held ? Value(view.status) : Value(nullptr));
  object.emplace("status_reason", held ? Value(view.reason) : Value(nullptr));
  std::string problem = view.problem;
  if (with_options) {
    const std::string of_options = options_problem_of(row);
    problem += (problem.empty() || of_options.empty() ? "" : "; ") + of_options;
    object.emplace("options", shown_options(row));
  }
  object.emplace("problem", problem.empty() ? Value(nullptr) : Value(problem));
  return store::to_json(object);
}

}  // namespace holdfast::cli
