#include "cli/conn_select.hpp"

#include <algorithm>
#include <map>

#include "cli/connections.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

// Every connection that the index knows.
Result<std::vector<Row>> listed(StoreSession& store, Removed removed) {
  std::vector<std::string_view> states{state::started, state::stopped};
  if (removed == Removed::included) states.push_back(state::removed);
  std::map<std::string, Row> rows;  // one that moves from state to state meanwhile is there once
  for (const auto name : states) {
    auto found = store.all(name);
    if (!found) return tl::unexpected<Error>(found.error());
    for (Row& row : *found) {
      if (id_of(row)) rows.insert_or_assign(row.key, std::move(row));
    }
  }
  std::vector<Row> result;
  result.reserve(rows.size());
  for (auto& [key, row] : rows) result.push_back(std::move(row));
  return result;
}

Error no_match(const std::string& pattern, std::size_t others) {
  if (!is_glob(pattern)) {
    return {Code::not_found, "no connection is called '" + pattern + "': see 'holdfast conn ls'"};
  }
  if (others == 0) {
    return {Code::not_found,
            "no connection matches '" + pattern + "', there are none at all: add one with 'holdfast conn add'"};
  }
  return {Code::not_found, "no connection matches '" + pattern + "', of " + std::to_string(others) +
                               " that there are: see 'holdfast conn ls'"};
}

}  // namespace

Result<std::vector<Row>> select_connections(StoreSession& store, const std::vector<std::string>& patterns,
                                            Removed removed) {
  const bool any_glob = patterns.empty() || std::any_of(patterns.begin(), patterns.end(), is_glob);
  std::vector<Row> all;
  if (any_glob) {
    auto found = listed(store, removed);
    if (!found) return found;
    all = std::move(*found);
  }
  std::map<std::string, Row> chosen;
  for (const std::string& pattern : patterns) {
    const std::size_t before = chosen.size();
    bool matched = false;
    if (!is_glob(pattern)) {
      auto row = store.get(key_of(pattern));
      if (!row) return tl::unexpected<Error>(row.error());
      matched = row->has_value();
      if (matched) chosen.insert_or_assign((*row)->key, **row);
    }
    for (const Row& row : all) {
      if (!is_glob(pattern) || !glob_matches(pattern, *id_of(row))) continue;
      matched = true;
      chosen.insert_or_assign(row.key, row);
    }
    if (!matched && chosen.size() == before) {
      return tl::unexpected<Error>(no_match(pattern, all.size()));
    }
  }
  if (!patterns.empty()) {
    all.clear();
    for (auto& [key, row] : chosen) all.push_back(std::move(row));
  }
  sort_by_id(all);
  return all;
}

}  // namespace holdfast::cli
