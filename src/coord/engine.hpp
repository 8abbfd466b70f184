#pragma once
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "holdfast/coordination.hpp"
#include "holdfast/error.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"

namespace holdfast::coord {

/// A store on a loop on a thread of its own, for callers on other threads that wait for what they ask. Any thread may
/// call.
///
/// What lives on the loop (a Coordinator, say) is made by `inhabit`, and destroyed there, before the store. Whatever
/// ends the loop, nobody waits for ever: who has asked is then told that it is not known what became of it.
class Engine {
 public:
  /// What an embedded store is asked first, so that one that can never work is told about at once. A server is asked
  /// nothing: that takes time and costs.
  enum class First {
    make_table,  ///< to make itself, where it is not there
    look,        ///< whether it is there
    nothing,     ///< it may be away
  };
  using Inhabit = std::function<Result<std::shared_ptr<void>>(Store&, Loop&)>;
  /// Waits for what comes first, at most `patience`; a store that merely does not answer may come back.
  [[nodiscard]] static Result<std::shared_ptr<Engine>> start(const std::string& store, First first, Duration patience,
                                                             Inhabit inhabit);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// At once; what is asked for from then on is refused. Requests that are under way have a moment to end.
  void stop();
  /// False where the loop has ended: the task was dropped.
  bool post(Task task);

  /// Asks on the loop, and waits here for the answer. Refused on the loop's own thread, which would wait for itself.
  template <class T>
  [[nodiscard]] Ended<T> call(std::function<void(std::function<void(Ended<T>)>)> ask) {
    if (is_current()) return tl::unexpected(called_from_within());
    auto promise = std::make_shared<std::promise<Ended<T>>>();
    std::future<Ended<T>> answer = promise->get_future();
    // From here on only the loop has the promise: when that drops it, we are told.
    const bool posted = post([ask = std::move(ask), promise = std::move(promise)] {
      ask([promise](Ended<T> result) { promise->set_value(std::move(result)); });
    });
    if (!posted) return tl::unexpected(has_ended());
    try {
      return answer.get();
    } catch (const std::future_error&) {
      return tl::unexpected(has_ended());
    }
  }

 private:
  Engine();
  [[nodiscard]] bool is_current() const;
  [[nodiscard]] static Failure called_from_within();
  [[nodiscard]] Failure has_ended();

  class Body;
  const std::unique_ptr<Body> body_;
};

}  // namespace holdfast::coord
