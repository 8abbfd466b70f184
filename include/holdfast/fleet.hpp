#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/report.hpp"
#include "holdfast/resource.hpp"
#include "holdfast/sink.hpp"

namespace holdfast {

struct FleetOptions {
  std::string store = "sqlite:holdfast.db";  ///< sqlite:PATH, dynamodb://TABLE?region=REGION
  bool make_table = true;                    ///< a SQLite file that is not there yet; false: run() then refuses
  std::string id{};                          ///< this worker's name; empty: host name and process id
  std::size_t max_connections = 100;
  LeaseOptions lease{};
  unsigned threads = 1;  ///< loops that connections live on; the leases are kept on a loop of their own
  Duration drain_timeout = std::chrono::seconds(20);
  /// A checkpoint rides on each renewal and costs nothing more. Asked for more often than renewals come, each is a
  /// renewal out of turn, for connections whose numbers went on. At least 100 ms.
  std::optional<Duration> checkpoint_every{};
  Duration sink_patience = std::chrono::seconds(30);  ///< a sink that fails longer has everything released
  /// SIGTERM, SIGINT: the first begins a drain, a further one stops at once. What comes within a second of the first
  /// counts as the same (a process and its group are often told together).
  bool handle_signals = true;
  std::string report_file{};  ///< JSON, written at the end, by rename; empty: none. Tried at the start
  /// `ADDRESS:PORT` (an IP address; port 0: a free one) at which other workers reach this one, by UDP. Where
  /// following the store's changes is for one worker (DynamoDB), those that have this take turns in it and tell each
  /// other, so that what becomes free is taken within a second; empty: this one only looks at its usual pace.
  std::string advertise{};
  std::string poke_listen{};       ///< `ADDRESS:PORT` to listen on for that, where it is another; empty: the same
  std::string log_level = "info";  ///< debug, info, warning, error, off; to standard error
};

/// One worker of a fleet, inside this process: takes leases on rows that nobody holds, runs what they stand for,
/// renews, and gives them back.
///
///     holdfast::Fleet fleet({.store = "sqlite:feeds.db"});
///     fleet.on_message([](const holdfast::Record& record) { std::cout << record.data << '\n'; });
///     auto report = fleet.run();
///
/// It takes every row of the table that is started and that nobody holds, whatever the row was meant for: a table is
/// for one kind of work, connections or jobs, and all its workers do the same. Rows are added with `holdfast conn
/// add ID --url URL`; for holds() the URL means nothing to Holdfast, but it must be one (ws://job/ will do).
///
/// Say first what it is for (exactly one of sink(), on_message(), holds()), then run(). drain() and stop() may
/// be called from any thread at any time; the rest from one.
class Fleet {
 public:
  explicit Fleet(FleetOptions options);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// WebSocket connections, whose messages go into this sink.
  void sink(std::unique_ptr<Sink> sink);
  /// The same by name: `ndjson:DIR[?...]` or `stdout`. A bad one is told by run().
  void sink(std::string spec);
  /// WebSocket connections, whose messages go to this function; a message counts as acknowledged when it
  /// returns. Called on the connection's own thread: with more than one thread, several calls at once. A throw
  /// ends the worker (run() says so).
  void on_message(std::function<void(const Record&)> handler);
  /// Anything else that exactly one worker should run at a time. The factory and its resources are called on
  /// the threads that the resources live on.
  void holds(ResourceFactory factory);

  /// Works until drained. An error only where it could not start, or ended by an unexpected error: print its
  /// `detail`, one line that says what to do. How well it ended is in the report. Makes a SQLite file first where
  /// it is missing (unless told not to), but never a folder, nor a table of DynamoDB: 'holdfast init' does. Once.
  [[nodiscard]] Result<Report> run();

  /// Begins to stop: claims nothing more, ends what it holds in order, gives it back. run() then returns.
  void drain();
  /// Stops at once: nothing is given back, leases run out by themselves. run() then returns.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast
