#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "coord/journal.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "runtime/http_server.hpp"

namespace holdfast::serve {

struct ServiceOptions {
  std::string id;       ///< of this process, for people
  std::string version;  ///< in the OpenAPI document
  std::string token;    ///< empty: none is needed
  bool is_unix = false;
  /// Requests that wait, at most: fewer than there may be at once, so that who holds something can always say so.
  std::size_t waiting_most = 1000;
  Duration patience = std::chrono::seconds(5);  ///< how long the store is waited for
  std::size_t guards_most = 10'000;
  /// Of what is accepted provisionally; none: nothing is. It lives as long as the service.
  coord::Journal* journal = nullptr;
  Duration max_age = std::chrono::hours(24);
  std::size_t max_provisional = 1000;
  /// Told once when something that goes on by itself begins to fail, and when it works again. Empty: nobody is.
  std::function<void(std::string_view)> complain = {};
  bool has_invocations = false;  ///< it serves a function beside it: see invocation_begun()
};

/// The primitives of ephemeral coordinators over HTTP: what an HttpServer's hooks call. On the loop's thread; the
/// HttpServer goes first.
class Service {
 public:
  Service(Store& store, Loop& loop, ServiceOptions options);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void serve(std::shared_ptr<runtime::HttpExchange> exchange);
  [[nodiscard]] std::optional<runtime::HttpAnswer> admit(const runtime::HttpIncoming& request) const;
  [[nodiscard]] static runtime::HttpAnswer refuse(int status, std::string_view why);
  /// The hooks, for an HttpServer that lives no longer than this.
  [[nodiscard]] runtime::HttpServerOptions hooks(runtime::HttpServerLimits limits);

  /// What callers of the invocation before hold is given back, and their waits end; of callers who did not say of
  /// which invocation they are, it runs out, since it may be this one's. At `deadline` the same befalls what this one
  /// holds.
  void invocation_begun(const std::string& id, WallTime deadline);

  /// Gives out no guard any more, and ends the waits. Callers have `limit` to finish with the guards that they have;
  /// then those are given back, and batches of invocations. `done`: none is left.
  void drain(Duration limit, std::function<void()> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::serve
