#include "store/memory/indexed_rows.hpp"

#include <algorithm>

#include "holdfast/assert.hpp"
#include "store/request.hpp"
#include "store/rows.hpp"

namespace holdfast::store {

const Row* IndexedRows::find(std::string_view key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second.row;
}

void IndexedRows::put(Row row) {
  auto place = rows_.find(row.key);
  if (place == rows_.end()) place = rows_.emplace(row.key, Kept{{}, due_.end(), {}}).first;
  Kept& kept = place->second;
  kept.row = std::move(row);
  index(kept);
}

void IndexedRows::erase(std::string_view key) {
  const auto found = rows_.find(key);
  if (found == rows_.end()) return;
  const Kept& kept = found->second;
  if (kept.state != due_.end()) kept.state->second.erase(kept.due);
  rows_.erase(found);
}

void IndexedRows::index(Kept& kept) {
  const auto key = index_key(kept.row);
  if (key && kept.state != due_.end() && kept.state->first == key->state && kept.due->first == key->expires_at)
    return;
  Due::node_type node;
  if (kept.state != due_.end()) node = kept.state->second.extract(kept.due);
  kept.state = due_.end();
  if (!key) return;
  kept.state = due_.find(key->state);
  if (kept.state == due_.end()) kept.state = due_.emplace(key->state, Due()).first;
  if (node) {
    node.value().first = key->expires_at;
    kept.due = kept.state->second.insert(std::move(node)).position;
  } else {
    kept.due = kept.state->second.emplace(key->expires_at, kept.row.key).first;
  }
}

PageReply IndexedRows::query(const QueryDue& query) const {
  PageReply reply{Outcome::applied, {}, {}};
  const auto last = last_expiry(query.before);
  const auto state = due_.find(query.state);
  if (!last || state == due_.end()) return reply;
  const Due& due = state->second;
  auto from = due.lower_bound({query.from.time_since_epoch().count(), ""});
  if (const auto after = position_from(query.page)) from = due.upper_bound({after->expires_at, after->key});
  const std::size_t limit = std::min(query.limit, page_rows_max);
  for (; from != due.end() && from->first <= *last; ++from) {
    if (reply.value.rows.size() == limit) {
      const auto& [expires_at, key] = *std::prev(from);
      reply.value.next = to_token(expires_at, key);
      break;
    }
    reply.value.rows.push_back(*find(from->second));
  }
  return reply;
}

}  // namespace holdfast::store
