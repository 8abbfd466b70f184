#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sim/process.hpp"

namespace holdfast::sim {

/// A worker that knows only Pk, desired_state, ws_url, lease_owner, lease_expires_at_ms and last_seq: it claims a row
/// without an owner or with an expiry that has passed, renews while it is the owner, and gives back by writing 0. It
/// never heard of epochs. Its own network is good: what it promises to others, it can keep.
class PlainWorker {
 public:
  PlainWorker(const Surroundings& around, std::size_t place);

  /// Gives everything back and claims no more.
  void retire();

 private:
  void turn();
  void look();
  void claim(const Row& row);
  void renew(std::int32_t connection);
  void release(std::int32_t connection);
  [[nodiscard]] std::int64_t now_ms() const { return loop_.wall().time_since_epoch().count(); }
  void believe(std::int32_t connection, std::int64_t expires_at);

  Surroundings around_;
  World& world_;
  NodeClock clock_;
  NodeLoop loop_;
  std::string name_;
  std::int16_t number_ = -1;
  std::unique_ptr<SimStore> store_;
  std::map<std::int32_t, std::int64_t> held_;  // connection → expiry as written
  bool retired_ = false;
};

}  // namespace holdfast::sim
