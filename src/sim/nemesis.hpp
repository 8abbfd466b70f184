#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/people.hpp"
#include "sim/plain.hpp"
#include "sim/process.hpp"
#include "sim/weather.hpp"

namespace holdfast::sim {

/// The fleet, and the one who does things to it: draws when, to whom and for how long, until it is told to make
/// everything well.
class Nemesis {
 public:
  Nemesis(const Surroundings& around, People& people);
  ~Nemesis();
  Nemesis(const Nemesis&) = delete;
  Nemesis& operator=(const Nemesis&) = delete;

  void start();
  /// Faults end: everybody runs, clocks are right, the network is good, people keep their hands still.
  void make_well();
  /// Where nobody runs, somebody does again. To be called now and then once all is well.
  void keep_running();
  void drain_all();
  /// Drains one of several and leaves its place empty. Null: there are too few. Valid until the next call of these.
  [[nodiscard]] const Process* drain_one();
  /// Everybody is gone, as after a crash.
  void end() { processes_.clear(); }

  [[nodiscard]] const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

 private:
  void next(Fault fault);
  void strike(Fault fault);
  [[nodiscard]] bool strike_store(Fault fault);
  [[nodiscard]] bool strike_people(Fault fault);
  void strike_process(Fault fault, Process& process);
  void rolling_restart(std::size_t place);
  void start_at(std::size_t place);
  void replace(std::size_t place, Duration after);
  void after(Duration time, Task task);
  void step_clock(Process& process);
  [[nodiscard]] Process* process_at(std::size_t place, std::uint64_t run) const;
  [[nodiscard]] Duration some_leases(double least, double most);
  void bury();

  Surroundings around_;
  World& world_;
  People& people_;
  Random random_;
  Weather weather_;
  std::vector<std::unique_ptr<Process>> processes_;  // by place; null: nobody runs there
  std::vector<std::uint64_t> runs_;                  // by place: the latest run's number
  std::vector<std::unique_ptr<PlainWorker>> plain_;
  std::uint64_t last_run_ = 0;
};

}  // namespace holdfast::sim
