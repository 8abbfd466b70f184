#include "sim/history/row_table.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <variant>

namespace holdfast::sim {

namespace {

struct Digest {
  std::uint64_t hash = 0xcbf29ce484222325U;
  std::size_t bytes = 0;

  void mix(std::uint64_t value, std::size_t size) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29U;
    bytes += size;
  }
  void text(std::string_view value) { mix(std::hash<std::string_view>{}(value), sizeof(std::string) + value.size()); }
  void add(const Value& value) {
    mix(value.data().index(), sizeof(Value));
    std::visit(*this, value.data());
  }
  void operator()(std::nullptr_t) { mix(0, 0); }
  void operator()(bool value) { mix(value ? 1 : 2, 0); }
  void operator()(std::int64_t value) { mix(static_cast<std::uint64_t>(value), 0); }
  void operator()(double value) { mix(std::hash<double>{}(value), 0); }
  void operator()(const std::string& value) { text(value); }
  void operator()(const Value::Unreadable& value) { text(value.what); }
  void operator()(const Value::List& list) {
    for (const Value& item : list) add(item);
  }
  void operator()(const Value::Map& map) {
    constexpr std::size_t tree_node = 48;
    for (const auto& [name, item] : map) {
      mix(map.size(), tree_node);
      text(name);
      add(item);
    }
  }
};

}  // namespace

RowTable::Id RowTable::intern(const std::optional<Row>& row) {
  Digest digest;
  if (row) digest(row->attributes);
  const auto [first, last] = by_hash_.equal_range(digest.hash);
  for (auto found = first; found != last; ++found) {
    if (rows_[found->second] == row) return found->second;
  }
  const Id id = static_cast<Id>(rows_.size());
  rows_.push_back(row);
  by_hash_.emplace(digest.hash, id);
  bytes_ += digest.bytes + sizeof(rows_.front()) + 64;
  return id;
}

}  // namespace holdfast::sim
