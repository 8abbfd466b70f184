// Holds WebSocket connections and hands their messages to a function of its own.
//
//     holdfast conn add btc --store sqlite:feeds.db --url ws://127.0.0.1:9000/stream/btc --seq-pointer /seq
//     example_own_handler sqlite:feeds.db 100
//
// Start it as often as you like, on as many terminals: each connection lives in one of them at a time. It takes every
// connection of its table.
#include <atomic>
#include <cstdlib>
#include <holdfast/holdfast.hpp>
#include <iostream>

int main(int argc, char** argv) {
  holdfast::FleetOptions options;
  if (argc > 1) options.store = argv[1];
  const long enough = argc > 2 ? std::atol(argv[2]) : 0;  // messages after which it ends; 0: never

  holdfast::Fleet fleet(options);
  std::atomic<long> seen = 0;
  fleet.on_message([&](const holdfast::Record& record) {
    if (record.kind == holdfast::Record::Kind::gap) return;
    std::cout << record.connection << ' ' << record.seq << ' ' << record.data << '\n';
    if (++seen == enough) fleet.drain();  // when this returns, the message is acknowledged
  });

  const auto report = fleet.run();  // until SIGTERM, SIGINT or drain()
  if (!report) {
    std::cerr << "own_handler: " << report.error().detail << '\n';
    return 1;
  }
  std::cerr << report->tally.messages << " messages from " << report->claims << " connections\n";
}
