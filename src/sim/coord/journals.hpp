#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coord/available.hpp"
#include "coord/journal.hpp"
#include "sim/coord/counters.hpp"
#include "sim/coord/decisions.hpp"
#include "sim/coord/queues.hpp"
#include "sim/coord/scene.hpp"
#include "sim/coord/stocks.hpp"

namespace holdfast::sim::coordinated {

using holdfast::Intent;  // of a journal; what a write of a lease wants has that name, too

/// The available mode: what was accepted provisionally ends confirmed, and has happened, or rejected, and never does,
/// with its compensation once. The journals are real SQLite files on the disks of machines that outlive their
/// processes; their calls wait, and so happen at one instant of virtual time.
class Journals final : public Scene {
 public:
  struct Others {
    Counters& counters;
    Decisions& decisions;
    Stocks& stocks;
    Queues& queues;
  };
  Journals(Stage& stage, Others others, std::size_t machines);
  ~Journals() override;

  void act(Node& node) override;
  [[nodiscard]] std::string left() override;
  void judge() override;

 private:
  struct Desk;
  /// What became of a ticket, as callers were told.
  struct Ticket {
    std::size_t machine = 0;
    Wish wish;
    bool committed = false;    // told that it is in the store
    bool provisional = false;  // told that it will be settled
    bool refused = false;      // told that it never will be
    std::size_t compensations_begun = 0;
    std::size_t compensations_done = 0;
  };
  Desk* desk(Node& node);
  [[nodiscard]] std::string new_ticket(Node& node, Wish wish);
  void accept(Node& node);
  template <class T>
  void accepted(Node& node, const std::string& ticket, const Ended<Accepted<T>>& ended);
  void sell(Node& node);
  void set_aside(Node& node);
  void reconcile(Node& node);
  void compensate(Node& node, const Intent& rejected, bool is_repeat,
                  std::function<void(holdfast::Result<void>)> done);
  [[nodiscard]] bool has_happened(const std::string& ticket, const Wish& wish) const;
  void judge(const Intent& intent);
  [[nodiscard]] std::string path_of(std::size_t machine) const;

  const Others others_;
  std::string folder_;
  std::map<std::string, Ticket> tickets_;
  std::vector<std::string> quotas_;  // made, by place
  std::vector<bool> settled_;        // at the end, by machine
};

}  // namespace holdfast::sim::coordinated
