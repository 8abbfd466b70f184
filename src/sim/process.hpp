#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/log.hpp"
#include "sim/network.hpp"
#include "sim/node_loop.hpp"
#include "sim/post.hpp"
#include "sim/recorder.hpp"
#include "sim/rules.hpp"
#include "sim/sink.hpp"
#include "sim/store.hpp"
#include "sim/stream.hpp"
#include "sim/upstream.hpp"
#include "sim/world.hpp"
#include "worker/stream.hpp"
#include "worker/worker.hpp"

namespace holdfast::sim {

/// What processes share.
struct Surroundings {
  World& world;
  Rules& rules;
  std::shared_ptr<SimTable> table;
  std::vector<Upstream>& upstreams;
  Recorder* recorder = nullptr;  ///< null: histories are not recorded
  SimStream* stream = nullptr;   ///< null: changes are told to all, or to nobody
  SimPost* post = nullptr;       ///< null: workers do not tell each other
};

/// One run of one worker: the production shells on simulated loops, store, network and sink. Destroying it is a
/// crash: what it had sent still arrives.
class Process {
 public:
  /// `place`: which machine of the fleet; its name stays the same from run to run.
  Process(const Surroundings& around, std::size_t place, std::uint64_t run);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void drain();
  void pause();
  void resume();
  void stall();  ///< some of its threads stand still: those of its streams, or the one of its leases
  void go_on();  ///< all do
  void partition(bool on) { network_.partition(on); }
  void reject(bool on) { network_.reject(on); }
  void set_wall_error(Duration error, double drift);
  [[nodiscard]] SimSink& sink() { return *sink_; }

  [[nodiscard]] std::int16_t number() const { return number_; }
  [[nodiscard]] std::size_t place() const { return place_; }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool draining() const { return worker_->draining(); }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] const worker::Worker& worker() const { return *worker_; }
  [[nodiscard]] const NodeClock& clock() const { return clock_; }
  [[nodiscard]] const std::vector<std::string>& said() const { return said_; }
  /// S10: what it has under way is bounded.
  void check_bounds();

 private:
  struct Thread {
    std::unique_ptr<NodeLoop> loop;
    std::unique_ptr<SimConnector> connector;
    std::unique_ptr<worker::StreamGroup> group;
  };
  [[nodiscard]] SimStore::Hooks hooks();
  [[nodiscard]] std::unique_ptr<Resource> make_resource(const Row& row, Loop& loop);
  void heard(std::string_view line);
  void stands_still(bool control, bool streams);
  void check_drain();
  void report_marks();

  World& world_;
  Rules& rules_;
  Recorder* const recorder_;
  const std::size_t place_;
  std::int16_t number_ = -1;
  NodeClock clock_;
  Random random_;
  Network network_;
  runtime::Log log_;
  NodeLoop control_;
  NodeLoop sink_loop_;
  std::vector<Thread> threads_;
  std::unique_ptr<SimSink> sink_;
  std::unique_ptr<SimStore> store_;
  std::unique_ptr<worker::PokeNet> pokes_;
  std::unique_ptr<worker::Worker> worker_;
  std::vector<std::string> said_;
  std::optional<Instant> paused_at_;
  std::size_t believed_when_paused_ = 0;
  bool paused_ = false;
  std::uint64_t stalls_ = 0;
  bool ended_ = false;
};

}  // namespace holdfast::sim
