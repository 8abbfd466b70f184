#include "sim/table.hpp"

#include <algorithm>
#include <utility>

#include "store/rows.hpp"

namespace holdfast::sim {

void LaggingIndex::write(const Row& row, Instant visible_at) {
  Instant& latest = latest_[row.key];
  latest = std::max(latest, visible_at);
  coming_.push({latest, ++order_, row});
}

void LaggingIndex::catch_up(Instant now) {
  for (; !coming_.empty() && coming_.top().visible_at <= now; coming_.pop()) {
    const Row& row = coming_.top().row;
    if (const auto old = rows_.find(row.key); old != rows_.end()) {
      if (const auto key = store::index_key(old->second)) {
        due_.erase({std::string(key->state), key->expires_at, row.key});
      }
    }
    if (const auto key = store::index_key(row)) due_.emplace(key->state, key->expires_at, row.key);
    rows_.insert_or_assign(row.key, row);
  }
}

PageReply LaggingIndex::query(const QueryDue& query, Instant now) {
  catch_up(now);
  PageReply reply{Outcome::applied, {}, {}};
  const auto last = store::last_expiry(query.before);
  if (!last) return reply;
  auto from = due_.lower_bound({query.state, query.from.time_since_epoch().count(), ""});
  if (const auto after = store::position_from(query.page)) {
    from = due_.upper_bound({query.state, after->expires_at, after->key});
  }
  for (; from != due_.end(); ++from) {
    const auto& [state, expires_at, key] = *from;
    if (state != query.state || expires_at > *last) break;
    if (reply.value.rows.size() == query.limit) {
      const Row& previous = reply.value.rows.back();
      reply.value.next = store::to_token(previous.number(attribute::expires_at), previous.key);
      break;
    }
    reply.value.rows.push_back(rows_.at(key));
  }
  return reply;
}

store::Answer SimTable::execute(const store::Request& request, const Origin& origin, Now now) {
  if (lag_) {
    if (const auto* query = std::get_if<QueryDue>(&request)) return index_.query(*query, now.instant);
  }
  store::Answer answer = memory_.execute(request, now.wall);
  if (const auto* update = std::get_if<Update>(&request)) {
    const auto& reply = std::get<RowReply>(answer);
    if (lag_ && reply.ok()) index_.write(*reply.value, now.instant + lag_());
    if (watcher_) watcher_(*update, reply, origin);
  } else if (std::holds_alternative<store::Transact>(request) && lag_) {
    const auto& reply = std::get<RowsReply>(answer);
    if (reply.ok()) {
      for (const Row& row : reply.value) index_.write(row, now.instant + lag_());
    }
  }
  return answer;
}

}  // namespace holdfast::sim
