#include "core/coord/queue_look.hpp"

#include <algorithm>
#include <utility>

#include "core/coord/damage.hpp"
#include "core/coord/queue.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

constexpr std::size_t page_rows = 500;

}  // namespace

// ---- PeekGroup ----

PeekGroup::PeekGroup(std::string queue, std::string group, std::size_t most, Instant deadline, Random& random)
    : ReadProcedure(deadline, random), queue_(std::move(queue)), group_(std::move(group)), most_(most) {
  HOLDFAST_ASSERT(most >= 1 && most <= 100, "as many as one read of rows takes");
}

Ask PeekGroup::read(Now) {
  if (!view_) return ReadRow{group_key(queue_, group_)};
  ReadRows messages;
  const Group& group = view_->group;
  const std::int64_t end = group.head + std::min(group.size(), static_cast<std::int64_t>(most_));
  for (std::int64_t seq = group.head; seq < end; ++seq) messages.keys.push_back(message_key(queue_, group_, seq));
  return messages;
}

void PeekGroup::took(Answer answer, Now) {
  if (!view_) return saw_group(answer.row());
  for (const Row& row : answer.rows) {  // one that is past its retention is missing
    auto message = message_in(row);
    if (!message) return fail(damaged_row(row));
    view_->messages.push_back(*std::move(message));
  }
  std::ranges::sort(view_->messages, {}, &Message::seq);
  conclude(std::move(view_));
}

void PeekGroup::saw_group(const Row* row) {
  if (row == nullptr) return conclude(std::nullopt);
  auto group = group_in(*row);
  if (!group) return fail(damaged_row(*row));
  view_ = GroupView{*std::move(group), {}};
  if (view_->group.size() <= 0) conclude(std::move(view_));
}

// ---- ListGroups ----

ListGroups::ListGroups(std::string_view queue, std::size_t most, Instant deadline, Random& random)
    : ReadProcedure(deadline, random), most_(most), states_{parked_state(queue), ready_state(queue)} {}

Ask ListGroups::read(Now) {
  QueryDue query;
  query.state = states_.back();
  query.before = WallTime::max();
  query.limit = page_rows;
  query.page = page_;
  return LookDue{std::move(query)};
}

void ListGroups::took(Answer answer, Now) {
  left_out_.add(answer);
  for (const Row& row : answer.rows) {
    auto group = group_in(row);
    if (!group) {
      left_out_.add(row);
      continue;
    }
    list_.is_partial = list_.groups.size() >= most_;
    if (list_.is_partial) return finish();
    list_.groups.push_back(*std::move(group));
  }
  page_ = std::move(answer.next);
  if (page_.empty()) states_.pop_back();
  if (states_.empty()) finish();
}

void ListGroups::finish() {
  // A group that was parked between the two looks was seen twice: as it was seen later.
  std::vector<Group>& groups = list_.groups;
  std::ranges::stable_sort(groups, {}, &Group::group);
  const auto later =
      std::unique(groups.rbegin(), groups.rend(), [](const Group& a, const Group& b) { return a.group == b.group; });
  groups.erase(groups.begin(), later.base());
  list_.damaged = left_out_.rows();
  conclude(std::move(list_));
}

}  // namespace holdfast
