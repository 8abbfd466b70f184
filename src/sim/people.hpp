#pragma once
#include <cstdint>
#include <vector>

#include "sim/process.hpp"

namespace holdfast::sim {

/// Those who add, start, stop, edit and remove connections, with the updates that the command line uses.
class People {
 public:
  explicit People(const Surroundings& around);

  void add_all();
  /// One edit of the kind, of any connection.
  void stop_or_start();
  void stop_or_start(std::int32_t connection);
  void edit();
  void remove_or_add();
  void tamper();

 private:
  void write(std::int32_t connection, Update update, std::int64_t what);
  void add(std::int32_t connection);
  [[nodiscard]] std::int32_t any();

  Surroundings around_;
  World& world_;
  Random random_;
  std::vector<int> editions_;  // by connection
};

}  // namespace holdfast::sim
