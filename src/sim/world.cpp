#include "sim/world.hpp"

#include <charconv>

#include "holdfast/row.hpp"

namespace holdfast::sim {

std::string connection_name(std::int32_t connection) {
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
