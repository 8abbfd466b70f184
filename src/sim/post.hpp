#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "sim/world.hpp"
#include "worker/poke.hpp"

namespace holdfast::sim {

/// The network between workers, for pokes: they are lost, late or doubled, and some are made up by nobody of the
/// fleet.
class SimPost {
 public:
  explicit SimPost(World& world) : world_(world), random_(seed_of(world.plan.seed, "post")) {}

  /// One process's way to it, at a place of its own. `cut_off`: it reaches nobody, and nobody it.
  [[nodiscard]] std::unique_ptr<worker::PokeNet> open(std::int16_t process, Loop& own, std::function<bool()> cut_off,
                                                      std::function<void(std::string_view text)> sent);

 private:
  class Box;
  struct Address {
    Loop* own = nullptr;
    std::function<bool()> cut_off;
    std::function<void(std::string_view)> receiver;
  };
  void send(const std::string& place, const std::string& text);
  void deliver(const std::string& place, const std::string& text, Duration after);

  World& world_;
  Random random_;
  std::map<std::string, std::shared_ptr<Address>> addresses_;
};

}  // namespace holdfast::sim
