#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/store.hpp"
#include "store/diagnosis.hpp"
#include "store/open.hpp"
#include "store/race.hpp"

namespace holdfast::runtime {
class AsioLoop;
}

namespace holdfast::cli {

/// A store for a command: each call waits for its answer. What can pass (busy, timed out) is tried again for a
/// while; what cannot is an error that says what to do.
class StoreSession {
 public:
  enum class Create {
    never,        ///< a table that is not there is an error
    expected,     ///< the same, but that a file which is not there may come back: it is on a disk that is away
    if_embedded,  ///< simple to start with: an embedded table is made by the first command that writes
    always,
  };
  static constexpr Duration usual_patience = std::chrono::seconds(15);
  /// `patience`: for all tries of one request together.
  [[nodiscard]] static Result<std::unique_ptr<StoreSession>> open(const std::string& url, Create create,
                                                                  Duration patience = usual_patience);
  /// The same as `always`, with a say in how a table on a server is made: refused for any other.
  [[nodiscard]] static Result<std::unique_ptr<StoreSession>> make(const std::string& url,
                                                                  const store::Making& making);
  /// Whether a command can use this store: what is in memory is gone when the command ends.
  [[nodiscard]] static Result<void> check(const std::string& url);
  ~StoreSession();
  StoreSession(const StoreSession&) = delete;
  StoreSession& operator=(const StoreSession&) = delete;

  /// What open() did to the table, in words; empty: nothing.
  [[nodiscard]] const std::string& created() const { return created_; }
  [[nodiscard]] std::string name() const;
  [[nodiscard]] WallTime wall() const;

  Result<std::optional<Row>> get(const std::string& key);
  /// All rows in this state.
  Result<std::vector<Row>> all(std::string_view state);

  struct Written {
    bool applied = false;    ///< false: a conflict
    std::optional<Row> row;  ///< after the write, or as it was
    /// The conflict may be with an earlier try of this very write, whose row somebody has changed since (S5).
    bool may_be_ours = false;
  };
  Result<Written> update(const Update& update);
  /// Many at a time; `each` is called once for each, in any order. Ends at the first error.
  Result<void> update_all(const std::vector<Update>& updates,
                          const std::function<void(std::size_t index, const Written&)>& each);

  // For `doctor`: each is asked once, and is over at the deadline.
  [[nodiscard]] store::Diagnosis diagnose(Instant deadline);
  [[nodiscard]] store::RaceResult race(Instant deadline);
  [[nodiscard]] Reply<store::Walked> walk(const std::string& from, Instant deadline);
  // For commands that do more than single requests: they run the loop themselves.
  [[nodiscard]] Store& store();
  [[nodiscard]] runtime::AsioLoop& loop();
  /// Runs the loop until that is true; it is asked after whatever calls loop().stop().
  void run_until(const std::function<bool()>& is_done);

  /// From now on SIGINT and SIGTERM end wait() instead of the program.
  void catch_signals();
  [[nodiscard]] bool interrupted() const;
  /// Lets time pass; false when a signal came.
  bool wait(Duration duration);
  [[nodiscard]] Instant instant() const;

 private:
  struct Impl;
  explicit StoreSession(std::unique_ptr<Impl> impl);
  static Result<std::unique_ptr<StoreSession>> open(const std::string& url, Create create,
                                                    const store::Making& making, Duration patience);
  Result<void> initialize(bool is_remote);
  std::unique_ptr<Impl> impl_;
  std::string created_;
};

}  // namespace holdfast::cli
