#include "sim/world.hpp"

#include <charconv>

#include "holdfast/row.hpp"
#include "sim/coord/words.hpp"

namespace holdfast::sim {

using namespace std::chrono_literals;

NodeClock draw_clock(const World& world, Random& random) {
  const bool wrong = world.plan.on(Fault::wall_step) && random.below(2) == 0;
  const double rate = 1 + world.plan.rate_error_most() * (2 * random.unit() - 1);
  return {wrong ? rate : 1, world.now(), Instant{} + random.between(1s, 1000h)};
}

Duration World::index_lag(Random& random) {
  if (!strikes(Fault::stale_index, random)) return random.between(0ms, 20ms);
  return random.between(0ms, plan.terms.lease * 3);
}

std::string connection_name(std::int32_t connection) {
  if (const std::string subject = coordinated::name_of_subject(connection); !subject.empty()) return subject;
  return "c" + std::to_string(connection);
}

std::string connection_key(std::int32_t connection) {
  return std::string(key_prefix::connection) + connection_name(connection);
}

std::int32_t connection_of_name(std::string_view name) {
  std::int32_t number = -1;
  if (name.size() < 2 || name.front() != 'c') return -1;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : -1;
}

std::int32_t connection_of_key(std::string_view key) {
  if (!key.starts_with(key_prefix::connection)) return -1;
  return connection_of_name(key.substr(key_prefix::connection.size()));
}

}  // namespace holdfast::sim
