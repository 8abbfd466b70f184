#include <holdfast/holdfast.hpp>
#include <iostream>

int main() {
  const auto coordinator = holdfast::Coordinator::open({.store = "sqlite:feeds.db"});
  if (!coordinator || !(*coordinator)->decide("who", "us")) return 1;
  holdfast::Fleet fleet({.store = "sqlite:feeds.db"});
  fleet.on_message([](const holdfast::Record& record) { std::cout << record.data << '\n'; });
  const auto report = fleet.run();
  if (!report) std::cerr << report.error().detail << '\n';
  return report ? 0 : 1;
}
