#include "sim/rules.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

Rules::Rules(World& world) : world_(world), conns_(world.plan.connections) {}

std::int16_t Rules::add_process(Known known) {
  processes_.push_back(std::move(known));
  return static_cast<std::int16_t>(processes_.size() - 1);
}

void Rules::died(std::int16_t process) {
  this->process(process).alive = false;
  this->process(process).clock = nullptr;
  this->process(process).reads_changes = nullptr;
  for (Conn& at : conns_) {
    std::erase_if(at.holdings, [&](const Holding& one) { return one.process == process; });
  }
}

void Rules::broken(std::string rule, std::string what, std::int32_t connection) {
  if (violation_) return;
  violation_ = Violation{std::move(rule), std::move(what), connection, world_.now()};
}

Rules::Conn& Rules::conn(std::int32_t connection) {
  return conns_[static_cast<std::size_t>(connection)];
}

const Rules::Row& Rules::row(std::int32_t connection) const {
  return conns_[static_cast<std::size_t>(connection)].row;
}

Instant Rules::flowed_at(std::int32_t connection) const {
  return conns_[static_cast<std::size_t>(connection)].flowed_at;
}

std::int16_t Rules::believer(std::int32_t connection) const {
  for (const Holding& one : conns_[static_cast<std::size_t>(connection)].holdings) {
    if (!one.gone && believes(one)) return one.process;
  }
  return -1;
}

std::size_t Rules::believed_by(std::int16_t process) const {
  std::size_t count = 0;
  for (const Conn& at : conns_) {
    count += std::any_of(at.holdings.begin(), at.holdings.end(),
                         [&](const Holding& one) { return one.process == process && !one.gone && believes(one); });
  }
  return count;
}

std::string Rules::who(std::int16_t process) const {
  if (process < 0) return "somebody";
  return "p" + std::to_string(process) + " (" + processes_[static_cast<std::size_t>(process)].owner + ")";
}

Intent intent_of(const Update& update) {
  Intent intent;
  for (const Change& change : update.changes) {
    if (change.attribute == attribute::owner) {
      intent.kind = change.kind == Change::Kind::set ? Intent::Kind::claim : Intent::Kind::release;
    } else if (change.attribute == attribute::attempt && change.value.as_string() != nullptr) {
      intent.attempt = *change.value.as_string();
      if (intent.kind == Intent::Kind::other) intent.kind = Intent::Kind::renew;
    } else if (change.attribute == attribute::epoch && change.value.as_int() != nullptr) {
      intent.epoch = *change.value.as_int();
    } else if (change.attribute == attribute::renewal && change.value.as_int() != nullptr) {
      intent.renewal = *change.value.as_int();
    }
  }
  if (intent.epoch != 0 || intent.kind == Intent::Kind::other) return intent;
  for (const Condition& operand : update.condition.operands) {
    if (operand.kind == Condition::Kind::compare && operand.attribute == attribute::epoch &&
        operand.value.as_int() != nullptr) {
      intent.epoch = *operand.value.as_int();
    }
  }
  return intent;
}

}  // namespace holdfast::sim
