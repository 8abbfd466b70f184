#include "sim/resource.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

WatchedResource::WatchedResource(std::unique_ptr<Resource> inner, World& world, Rules& rules, Loop& loop,
                                 std::int16_t process)
    : inner_(std::move(inner)), world_(world), rules_(rules), loop_(loop), process_(process) {}

WatchedResource::~WatchedResource() {
  if (timer_ != 0) loop_.cancel(timer_);
  inner_.reset();
  if (guard_) rules_.let_go(process_, connection_, guard_->epoch());
}

void WatchedResource::start(::holdfast::Grant grant) {
  connection_ = connection_of_name(grant.id.value);
  guard_ = grant.guard;
  rules_.granted(process_, connection_, grant.guard, grant.row.number(attribute::last_seq));
  inner_->start(std::move(grant));
}

void WatchedResource::row_changed(const Row& row) {
  world_.marks.hit(Mark::edited_while_held);
  rules_.edited(process_, connection_);
  inner_->row_changed(row);
}

void WatchedResource::stop(LossReason reason, Instant deadline, std::function<void()> stopped) {
  rules_.told_to_stop(process_, connection_, guard_->epoch(), reason);
  const bool held = guard_->holds(loop_.instant());
  auto done = [this, held, stopped = std::move(stopped)] {
    if (held && !guard_->holds(loop_.instant())) world_.marks.hit(Mark::loss_while_stopping);
    stopped();  // last: it may destroy this
  };
  if (!world_.strikes(Fault::stubborn, loop_.random())) return inner_->stop(reason, deadline, std::move(done));
  // It stops reading, as it must, but does not say that it has stopped until after its time is over.
  inner_->stop(reason, deadline, [this, deadline, done = std::move(done)] {
    timer_ = loop_.call_at(std::max(deadline, loop_.instant()) + std::chrono::seconds(5), [this, done] {
      timer_ = 0;
      done();
    });
  });
}

}  // namespace holdfast::sim
