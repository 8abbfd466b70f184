#include "sim/upstream.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace holdfast::sim {

using namespace std::chrono_literals;

Upstream::Upstream(World& world, std::int32_t connection) : connection_(connection), begun_(world.now()) {
  Random random(seed_of(world.plan.seed, "upstream", static_cast<std::uint64_t>(connection)));
  every_ = random.between(world.plan.message_every / 2, world.plan.message_every * 2);
  const bool forgets = world.plan.on(Fault::forget) && random.below(2) == 0;
  keeps_ = forgets ? 5 + static_cast<std::int64_t>(random.below(50)) : INT64_MAX / 2;
  resume_ = static_cast<Resume>(random.below(3));
}

std::int64_t Upstream::newest(Instant truth) const {
  return truth < begun_ ? 0 : (truth - begun_) / every_ + 1;
}

std::int64_t Upstream::oldest(Instant truth) const {
  return std::max<std::int64_t>(1, newest(truth) - keeps_);
}

std::string Upstream::url(int edition) const {
  return "ws://upstream/" + connection_name(connection_) + "?edition=" + std::to_string(edition);
}

Value::Map Upstream::options(int edition) const {
  Value::Map options;
  options.emplace("seq.pointer", "/seq");
  if (edition % 2 == 1) options.emplace("silent_after", "30s");
  switch (resume_) {
    case Resume::query_inclusive:
      options.emplace("resume.inclusive", true);
      [[fallthrough]];
    case Resume::query:
      options.emplace("resume.query", "after");
      break;
    case Resume::message:
      options.emplace("resume.message", "{last_seq}");
      break;
  }
  return options;
}

}  // namespace holdfast::sim
