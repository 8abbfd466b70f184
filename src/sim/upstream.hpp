#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/coverage.hpp"
#include "sim/rules.hpp"
#include "sim/world.hpp"
#include "ws/connection.hpp"

namespace holdfast::sim {

/// The far side of one connection: numbers its messages from 1, one every so often, and keeps some of them. Nothing
/// is stored: what there was at a time follows from the time.
class Upstream {
 public:
  /// How it is told where to go on.
  enum class Resume : std::uint8_t { query, query_inclusive, message };

  Upstream(World& world, std::int32_t connection);

  [[nodiscard]] std::int64_t newest(Instant truth) const;
  [[nodiscard]] Instant made_at(std::int64_t seq) const { return begun_ + every_ * (seq - 1); }
  /// The oldest that it still has.
  [[nodiscard]] std::int64_t oldest(Instant truth) const;
  [[nodiscard]] Resume resume() const { return resume_; }
  [[nodiscard]] Duration every() const { return every_; }
  /// `ws_url` and `options` for its row; `edition` tells one edit from another.
  [[nodiscard]] std::string url(int edition) const;
  [[nodiscard]] Value::Map options(int edition) const;
  /// It began anew, as a connection that was removed and added again.
  void restart(Instant truth) { begun_ = truth; }

  /// Numbers that it will never send: holes of its own making.
  Coverage skipped;

 private:
  const std::int32_t connection_;
  Instant begun_;
  Duration every_;
  std::int64_t keeps_;
  Resume resume_;
};

/// The network between one process and all upstreams: a ws::Connector whose connections do what the plan says.
class SimConnector final : public ws::Connector {
 public:
  SimConnector(World& world, Rules& rules, std::vector<Upstream>& upstreams, Loop& loop, std::int16_t process,
               std::uint64_t seed);
  ~SimConnector() override;
  std::unique_ptr<ws::Connection> connect(ws::ConnectOptions options, ws::Events& events) override;

  /// Whether the connection that the process has to this upstream was sent any of these numbers.
  [[nodiscard]] bool was_sent(std::int32_t connection, std::int64_t from, std::int64_t to) const;
  /// After which number it asked to go on; -1: it did not say.
  [[nodiscard]] std::int64_t resumed_after(std::int32_t connection) const;

 private:
  class Session;
  World& world_;
  Rules& rules_;
  std::vector<Upstream>& upstreams_;
  Loop& loop_;
  const std::int16_t process_;
  Random random_;
  std::vector<Session*> sessions_;  // by connection; the latest
};

}  // namespace holdfast::sim
