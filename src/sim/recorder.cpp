#include "sim/recorder.hpp"

#include <utility>

#include "sim/history/linearizability.hpp"
#include "sim/history/ownership.hpp"

namespace holdfast::sim {

void Recorder::asked(const std::string& client, const store::Request& request, Instant now) {
  open_.erase(&request);  // one of which nobody heard stood in the same place
  const auto* update = std::get_if<Update>(&request);
  if (update == nullptr) return;
  open_[&request] = history_.size();
  Operation operation;
  operation.client = client;
  operation.key = update->key;
  operation.invoked = now;
  operation.update = *update;
  history_.push_back(std::move(operation));
}

void Recorder::answered(const store::Request& request, const store::Answer& answer, Instant now) {
  const auto found = open_.find(&request);
  if (found == open_.end()) return;
  Operation& operation = history_[found->second];
  open_.erase(found);
  const auto& reply = std::get<RowReply>(answer);
  operation.outcome = reply.outcome;
  operation.returned = now;
  operation.row = reply.value;
}

void Recorder::carried_out(const std::string& client, const Update& update, const RowReply& reply, Instant now) {
  Operation operation;
  operation.client = client;
  operation.key = update.key;
  operation.invoked = operation.returned = now;
  operation.update = update;
  operation.outcome = reply.outcome;
  operation.row = reply.value;
  history_.push_back(std::move(operation));
}

void Recorder::copied(const std::string& client, const Update& update, Instant invoked) {
  Operation operation;
  operation.client = client;
  operation.key = update.key;
  operation.invoked = invoked;
  operation.update = update;
  history_.push_back(std::move(operation));
}

Verdict Recorder::judge() const {
  if (Verdict verdict = check_epochs(grants_in(history_)); !verdict.good()) return verdict;
  if (Verdict verdict = check_writers(history_); !verdict.good()) return verdict;
  if (Verdict verdict = check_fence(effects_in(history_, attribute::last_seq)); !verdict.good()) return verdict;
  return check_linearizable(history_);
}

}  // namespace holdfast::sim
