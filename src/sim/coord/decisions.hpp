#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "sim/coord/scene.hpp"
#include "sim/history/calls.hpp"

namespace holdfast::sim::coordinated {

/// The first proposal wins, for ever, and everybody is told the same.
class Decisions final : public Scene {
 public:
  Decisions(Stage& stage, std::size_t count) : Scene(stage), count_(count) {}
  void act(Node& node) override;
  void wrote(const Write& write) override;
  void judge() override;

  /// What is decided under a key; null: nothing.
  [[nodiscard]] const Row* decided(const std::string& key) const;

 private:
  struct Call;
  void told(const Call& call, const Ended<Decided>& ended);

  const std::size_t count_;
  std::size_t calls_ = 0;
  std::set<std::string> impossible_;  // proposals of which was told that surely nothing happened
  std::map<std::size_t, DecideCalls> histories_;
};

}  // namespace holdfast::sim::coordinated
