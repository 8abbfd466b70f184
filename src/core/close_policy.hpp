#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/backoff.hpp"
#include "holdfast/random.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

/// How an outbound connection ended, without the engine that ran it.
struct ConnectionEnd {
  enum class Kind {
    failed,   ///< no connection: name, route, TLS, time limit, reset
    refused,  ///< the upgrade was answered with `http_status`
    closed,   ///< a close frame, theirs or ours, with `code` (1005: none)
  };
  Kind kind = Kind::failed;
  std::uint16_t code = 1006;
  int http_status = 0;
  std::optional<Duration> retry_after;
};

/// What the other side's answer means for us (F37, F38).
enum class Response {
  retry,                ///< connect again after the backoff
  retry_later,          ///< it said that it is busy or restarting: honour its Retry-After, else 5 s, then the backoff
  refresh_credentials,  ///< read `env:`/`file:` headers again and retry; park when that did not help
  park,                 ///< the same request would fail the same way: show why and wait
};
[[nodiscard]] std::string_view to_string(Response response);

/// The map, pure. Close codes: 1002 1003 1007 1008 1009 1010 park; 1012 1013 1014 retry later; 3000 and 3003
/// (IANA: unauthorized, forbidden) refresh; everything else, application codes (4000–4999) included, retry. HTTP: 401
/// 403 407 refresh; 408 425 retry; 429 503 retry later; other 4xx, and 1xx–3xx (no WebSocket there; redirects are not
/// followed), park; other 5xx retry. Failed: retry.
[[nodiscard]] Response judge(const ConnectionEnd& end);

/// One sentence for people on why it is parked: what the other side said and what that means.
[[nodiscard]] std::string explain(const ConnectionEnd& end);

/// What to do next with one connection: the map above and a Backoff, as pure state.
///
/// A parked connection keeps its lease and shows its reason. It is tried again when its row is edited
/// (row_changed()), and otherwise once in 10 to 20 minutes, since servers are repaired without anybody editing our
/// rows. Credentials that are refused `credential_tries` times without a stable connection in between park as well.
class Reconnect {
 public:
  struct Plan {
    bool parked = false;
    bool refresh_credentials = false;
    Instant at{};        ///< when to connect again
    std::string reason;  ///< where parked
  };

  explicit Reconnect(BackoffOptions options = {}) : stable_(options.stable), backoff_(options) {}

  void opened(Instant now);
  [[nodiscard]] Plan ended(const ConnectionEnd& end, Instant now, Random& random);
  /// The row was edited: forget what was learned, and connect again now if waiting or parked.
  void row_changed();

  [[nodiscard]] const Backoff& backoff() const { return backoff_; }

  static constexpr std::uint32_t credential_tries = 3;
  static constexpr Duration later_at_least = std::chrono::seconds(5);
  static constexpr Duration parked_at_least = std::chrono::minutes(10);
  static constexpr Duration parked_at_most = std::chrono::minutes(20);

 private:
  Duration stable_;
  Backoff backoff_;
  std::optional<Instant> opened_at_;
  std::uint32_t credential_refusals_ = 0;
};

}  // namespace holdfast
