// What programs that come and go agree on, with nothing between them but a table: who does a piece of work, that it
// is done once, and who comes first.
//
//     example_errands sqlite:errands.db order-17        as often as you like, at the same time or one after another
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <thread>

int main(int argc, char** argv) {
  const std::string store = argc > 1 ? argv[1] : "sqlite:errands.db";
  const std::string order = argc > 2 ? argv[2] : "order-1";
  const auto opened = holdfast::Coordinator::open({.store = store});
  if (!opened) {
    std::cerr << "errands: " << opened.error().detail << '\n';
    return 1;
  }
  holdfast::Coordinator& coordinator = **opened;
  const auto failed = [](const holdfast::Failure& failure) {
    std::cerr << "errands: " << failure.error.detail << '\n';
    return 1;
  };

  // Once, whoever comes first: all the others are told the same.
  const auto receipt = coordinator.run_once(
      order,
      [&](const holdfast::Right& right) {
        std::cout << "charging for " + order + " under epoch " + std::to_string(right.epoch().value) + "\n";
        return holdfast::OnceResult{.content = "receipt of " + coordinator.new_id()};
      },
      {.wait = std::chrono::seconds(30)});
  if (!receipt) return failed(receipt.error());
  std::cout << order + ": " + receipt->result->content + (receipt->was_replayed ? " (again)\n" : "\n");

  // One at a time: the right ends by itself should this process vanish.
  auto right = coordinator.acquire("the-only-printer", {.wait = std::chrono::seconds(30)});
  if (!right) return failed(right.error());
  for (int page = 1; page <= 3 && right->holds(); ++page) {  // before every effect
    std::cout << order + ": page " + std::to_string(page) + "\n" << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (const auto given_back = right->release(); !given_back) return failed(given_back.error());

  // The first proposal wins, for ever.
  const auto first = coordinator.decide("first-order-of-the-day", order);
  if (!first) return failed(first.error());
  std::cout << "the first order of the day was " + *first->value.as_string() + "\n";
}
