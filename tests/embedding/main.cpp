#include <holdfast/holdfast.hpp>
#include <iostream>

int main() {
  holdfast::Fleet fleet({.store = "sqlite:feeds.db"});
  fleet.on_message([](const holdfast::Record& record) { std::cout << record.data << '\n'; });
  const auto report = fleet.run();
  if (!report) std::cerr << report.error().detail << '\n';
  return report ? 0 : 1;
}
