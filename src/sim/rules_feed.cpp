// Who reads the table's changes for all (S1, S2, S3, S7, S8 on that row), and what workers do on hearing of them
// (S10).
#include <algorithm>
#include <utility>

#include "sim/rules.hpp"

namespace holdfast::sim {

void Rules::feed_carried_out(const Update& update, const RowReply& reply, const Origin& origin) {
  if (!reply.ok() || origin.process < 0) return;
  const Intent intent = intent_of(update);
  const std::string& self = process(origin.process).owner;
  Row after;
  after.exists = true;
  after.owner = reply.value->text(attribute::owner);
  after.epoch = reply.value->number(attribute::epoch);
  const auto wrong = [&](const char* rule, const std::string& what) {
    broken(rule, who(origin.process) + " " + what + " on the row of the change feed", -1);
  };
  switch (intent.kind) {
    case Intent::Kind::other:
      if (feed_.exists || !after.owner.empty()) wrong("S8", "wrote what is no claim, renewal or release");
      break;
    case Intent::Kind::claim:
      if (!feed_.exists) wrong("S8", "claimed what was not there");
      if (after.epoch <= feed_.epoch) wrong("S3", "claimed under an epoch that was used");
      if (!feed_.owner.empty() && feed_.owner != self) world_.marks.hit(Mark::reader_taken_over);
      break;
    case Intent::Kind::renew:
    case Intent::Kind::release:
      if (feed_.owner != self || feed_.epoch != intent.epoch) wrong("S2", "wrote under another's epoch");
      break;
  }
  feed_ = std::move(after);
  look_at_readers();
}

/// S1, of the row of the change feed.
void Rules::look_at_readers() {
  if (!world_.plan.clocks_keep_promise()) return;
  std::int16_t reader = -1;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const Known& known = processes_[i];
    if (!known.alive || !known.reads_changes || !known.reads_changes()) continue;
    const auto process = static_cast<std::int16_t>(i);
    if (reader >= 0) broken("S1", who(reader) + " and " + who(process) + " both read the changes for all", -1);
    reader = process;
  }
}

void Rules::poked(std::int16_t process) {
  const Known& known = this->process(process);
  if (!known.reads_changes || !known.reads_changes())
    broken("S7", who(process) + " tells others of changes although it does not believe that it is the reader", -1);
}

void Rules::looked(std::int16_t process, const QueryDue& query, Instant own_now) {
  if (query.state != state::started || !query.page.empty() || query.from != WallTime::min()) return;
  const Duration floor = std::clamp<Duration>(world_.plan.terms.reconcile_every / 10, std::chrono::milliseconds(50),
                                              std::chrono::milliseconds(250));
  Known& known = this->process(process);
  if (known.looked && own_now - *known.looked < floor)
    broken("S10", who(process) + " looks for orphans again before the least time between two looks has passed", -1);
  known.looked = own_now;
}

}  // namespace holdfast::sim
