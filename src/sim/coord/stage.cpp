#include "sim/coord/stage.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim::coordinated {

void Stage::broken(std::string rule, std::string what, std::int32_t subject) {
  if (violation) return;
  violation = Violation{std::move(rule), std::move(what), subject, world.now()};
}

void Stage::calls(std::int16_t process, std::int32_t subject, Verb verb) {
  world.note(Happening::Kind::calls, process, subject, static_cast<std::int64_t>(verb));
}

void Stage::hears(std::int16_t process, std::int32_t subject, Verb verb, How how, std::int64_t number) {
  world.note(Happening::Kind::hears, process, subject, static_cast<std::int64_t>(verb),
             static_cast<std::int64_t>(how), number);
}

How how(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::unavailable:
      return How::unavailable;
    case Failure::Kind::unknown:
      return How::unknown;
    case Failure::Kind::busy:
      return How::busy;
    case Failure::Kind::mismatch:
      return How::mismatch;
    case Failure::Kind::refused:
      return How::refused;
    case Failure::Kind::rejected:
      return How::rejected;
  }
  return How::rejected;
}

const Write::Left* Write::find(std::string_view prefix) const {
  const auto found =
      std::ranges::find_if(rows, [&](const Left& left) { return left.after->key.starts_with(prefix); });
  return found == rows.end() ? nullptr : &*found;
}

/// The value that was there at that time comes first.
std::size_t Series::first_at(Instant from) const {
  const auto later = std::ranges::upper_bound(values_, from, {}, &Step::from);
  const auto index = static_cast<std::size_t>(later - values_.begin());
  return index == 0 ? 0 : index - 1;
}

std::int64_t Series::least_since(Instant from) const {
  if (values_.empty()) return 0;
  std::int64_t least = from < values_.front().from ? 0 : values_.front().value;
  const std::size_t first = first_at(from);
  if (from >= values_.front().from) least = values_[first].value;
  for (std::size_t i = first; i < values_.size(); ++i) least = std::min(least, values_[i].value);
  return least;
}

bool Series::was(std::int64_t value, Instant from) const {
  if (values_.empty() || from < values_.front().from) {
    if (value == 0) return true;
  }
  for (std::size_t i = first_at(from); i < values_.size(); ++i) {
    if (values_[i].value == value) return true;
  }
  return false;
}

}  // namespace holdfast::sim::coordinated
