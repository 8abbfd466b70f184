#include "sim/table.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

void LaggingIndex::write(const Row& row, Instant visible_at) {
  Instant& latest = latest_[row.key];
  latest = std::max(latest, visible_at);
  coming_.emplace(latest, row);
}

void LaggingIndex::catch_up(Instant now) {
  for (; !coming_.empty() && coming_.begin()->first <= now; coming_.erase(coming_.begin())) {
    rows_.put(std::move(coming_.begin()->second));
  }
}

PageReply LaggingIndex::query(const QueryDue& query, Instant now) {
  catch_up(now);
  return rows_.query(query);
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
    if (write_watcher_ && reply.ok()) write_watcher_({*reply.value}, origin);
  } else if (std::holds_alternative<store::Transact>(request)) {
    const auto& reply = std::get<RowsReply>(answer);
    if (!reply.ok()) return answer;
    for (const Row& row : reply.value) {
      if (lag_) index_.write(row, now.instant + lag_());
    }
    if (write_watcher_) write_watcher_(reply.value, origin);
  }
  return answer;
}

}  // namespace holdfast::sim
