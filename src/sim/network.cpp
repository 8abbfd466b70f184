#include "sim/network.hpp"

#include <variant>

namespace holdfast::sim {

using namespace std::chrono_literals;

Fate Network::judge(const store::Request& request) {
  Fate fate;
  const Duration latency = world_.plan.latency;
  const Duration lease = world_.plan.terms.lease;
  fate.there = random_.between(latency / 2, latency * 2);
  fate.back = random_.between(latency / 2, latency * 2);
  if (world_.outage || partitioned_) {
    fate.kind = random_.below(2) == 0 ? Fate::Kind::lost : Fate::Kind::broken;
    return fate;
  }
  if (rejecting_) {
    fate.kind = Fate::Kind::rejected;
    return fate;
  }
  if (world_.calm) return fate;
  const bool in_burst = world_.throttled_share > 0 && random_.unit() < world_.throttled_share;
  if (in_burst || world_.strikes(Fault::throttled, random_)) {
    fate.kind = Fate::Kind::throttled;
    return fate;
  }
  if (world_.strikes(Fault::request_lost, random_)) {
    fate.kind = Fate::Kind::lost;
    return fate;
  }
  if (world_.strikes(Fault::server_error, random_)) {
    if (random_.below(2) == 0) {
      fate.kind = Fate::Kind::broken;
      return fate;
    }
    fate.answer_broken = true;
  }
  fate.answer_lost = world_.strikes(Fault::reply_lost, random_);
  if (world_.strikes(Fault::slow_request, random_)) fate.there = random_.between(latency, lease * 3);
  if (world_.strikes(Fault::slow_reply, random_)) fate.back = random_.between(latency, lease * 3);
  if (std::holds_alternative<store::BatchGet>(request) && world_.strikes(Fault::unprocessed, random_)) {
    fate.goes = 2 + random_.below(3);
  }
  const bool writes = std::holds_alternative<Update>(request) || std::holds_alternative<store::Transact>(request);
  if (!writes) return fate;
  if (world_.strikes(Fault::duplicate, random_)) fate.again = random_.between(0ms, latency * 4);
  if (world_.strikes(Fault::late_duplicate, random_)) fate.again = random_.between(latency, lease * 3);
  return fate;
}

}  // namespace holdfast::sim
