#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/coordination.hpp"
#include "sim/coord/words.hpp"
#include "sim/rules.hpp"
#include "sim/table.hpp"
#include "sim/world.hpp"

namespace holdfast::sim::coordinated {

/// What all parts of a run with coordinators share.
struct Stage {
  explicit Stage(World& world_) : world(world_), table(std::make_shared<SimTable>()) {}

  World& world;
  std::shared_ptr<SimTable> table;
  std::map<std::string, Row> rows{};     ///< as they are, by key
  std::vector<std::string> owners{};     ///< as in rows, by process
  std::optional<Violation> violation{};  ///< the first
  bool at_the_end = false;               ///< all is well, and what is left is done now

  [[nodiscard]] const Row* row(const std::string& key) const {
    const auto found = rows.find(key);
    return found == rows.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const LeaseTerms& terms() const { return world.plan.terms; }
  [[nodiscard]] bool clocks_keep_promise() const { return world.plan.clocks_keep_promise(); }
  /// True time, in the form that rows have it in.
  [[nodiscard]] WallTime true_wall() const { return world.truth.wall(world.now()); }
  /// How far the clock of whoever wrote something may have been from that.
  [[nodiscard]] Duration wall_error_most() const {
    return world.plan.wall_error_most() + std::chrono::milliseconds(2);
  }

  void broken(std::string rule, std::string what, std::int32_t subject);
  void calls(std::int16_t process, std::int32_t subject, Verb verb);
  void hears(std::int16_t process, std::int32_t subject, Verb verb, How how, std::int64_t number = 0);
};

[[nodiscard]] How how(Failure::Kind kind);
template <class T>
[[nodiscard]] How how(const Ended<T>& ended) {
  return ended ? How::done : how(ended.error().kind);
}

/// One write, as the table has carried it out: rows before and after.
struct Write {
  struct Left {
    const Row* before = nullptr;  ///< null: there was none
    const Row* after = nullptr;
  };
  std::vector<Left> rows;
  Origin origin;

  [[nodiscard]] const Left* find(std::string_view prefix) const;
};

/// How a number went: to tell whether somebody can have seen it, or too little of it.
class Series {
 public:
  void set(Instant now, std::int64_t value) { values_.push_back({now, value}); }
  [[nodiscard]] std::int64_t value() const { return values_.empty() ? 0 : values_.back().value; }
  /// The least, and whether it ever was this, from then until now.
  [[nodiscard]] std::int64_t least_since(Instant from) const;
  [[nodiscard]] bool was(std::int64_t value, Instant from) const;

 private:
  struct Step {
    Instant from{};
    std::int64_t value = 0;
  };
  [[nodiscard]] std::size_t first_at(Instant from) const;
  std::vector<Step> values_;
};

}  // namespace holdfast::sim::coordinated
