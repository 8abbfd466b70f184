#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "sim/stream.hpp"
#include "sim/table.hpp"
#include "store/change_feed.hpp"
#include "store/request_store.hpp"

namespace holdfast::sim {

/// What is to become of one request.
struct Fate {
  enum class Kind : std::uint8_t {
    carried_out,
    throttled,  ///< refused on arrival
    rejected,   ///< refused for good
    lost,       ///< nothing happens, and nobody says so
    broken,     ///< nothing happens, and the answer says nothing (connection refused)
  };
  Kind kind = Kind::carried_out;
  Duration there{};                 ///< until it arrives
  Duration back{};                  ///< until the answer does
  bool answer_lost = false;         ///< carried out, but nobody says so
  bool answer_broken = false;       ///< carried out, but the answer says nothing (5xx)
  std::optional<Duration> again{};  ///< it arrives once more, so long after it did
  std::size_t goes = 1;  ///< a BatchGet is carried out in so many: what one leaves unprocessed is asked for again
};

/// One process's way to the table: a network in which everything can happen that the contract allows. Deadlines and
/// handlers are on the process's loop, what is under way is on the world's: it arrives although its sender has died.
class SimStore final : public store::RequestStore {
 public:
  /// All may be empty: then nothing goes wrong and nothing takes time.
  struct Hooks {
    std::function<Fate(const store::Request&)> judge;
    std::function<bool()> reachable;  ///< asked when a request arrives, also after its sender has died
    std::function<void(const store::Request&)> asked;
    /// `late`: it came after the deadline and tells nobody.
    std::function<void(const store::Request&, const store::Answer&, bool late)> answered;
  };

  /// Both loops must outlive it; the world's must outlive what is under way.
  /// `feed`: tells of all changes itself; `stream`: reads them from there, as few should at once.
  SimStore(std::shared_ptr<SimTable> table, Loop& own, Loop& world, std::int16_t process, Hooks hooks, bool feed,
           SimStream* stream = nullptr);
  ~SimStore() override;
  SimStore(const SimStore&) = delete;
  SimStore& operator=(const SimStore&) = delete;

  void changes(ChangeListener listener) override;
  [[nodiscard]] Capabilities capabilities() const override;
  [[nodiscard]] std::size_t pending() const { return flights_.size(); }

 protected:
  void submit(std::shared_ptr<store::Operation> operation) override;
  void shut(std::function<void()> done) override;

 private:
  struct Flight;
  using FlightPtr = std::shared_ptr<Flight>;
  static void arrive(const FlightPtr& flight);
  static void arrive_again(const FlightPtr& flight);
  static void read_in_goes(const FlightPtr& flight, std::size_t done);
  static void send_back(const FlightPtr& flight, store::Answer&& answer);
  void finish(Flight& flight, store::Answer&& answer);

  std::shared_ptr<SimTable> table_;
  Loop& own_;
  Loop& world_;
  const std::int16_t process_;
  const std::shared_ptr<const Hooks> hooks_;
  SimStream* const stream_;
  std::shared_ptr<store::ChangeFeed> feed_;  // null: tells of no changes
  std::shared_ptr<SimStream::Reader> reader_;
  std::list<FlightPtr> flights_;  // not answered yet, in the order in which they were asked
};

}  // namespace holdfast::sim
