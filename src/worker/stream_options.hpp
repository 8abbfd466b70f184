#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"
#include "ws/url.hpp"

namespace holdfast::worker {

/// How one WebSocket connection is opened, resumed and read: the `ws_url` and the `options` map of its row
/// (docs/options.md says it for people).
struct StreamOptions {
  /// What becomes of a message in which the sequence pointer finds no number.
  enum class SeqMissing {
    deliver,  ///< it goes to the sink without a number: never dropped as a repeat, moves nothing
    drop,     ///< it is counted and left out: for acknowledgements and heartbeats of the upstream
  };

  ws::Url url;

  std::string resume_query;       ///< `resume.query`: a parameter of this name carries last_seq
  bool resume_inclusive = false;  ///< `resume.inclusive`: the upstream sends the number that it is given, too
  std::string resume_message;     ///< `resume.message`: a template, see ResumeTemplate

  std::string seq_pointer;                       ///< `seq.pointer` (RFC 6901); empty: the stream numbers itself
  SeqMissing seq_missing = SeqMissing::deliver;  ///< `seq.missing`
  bool seq_sparse = false;                       ///< `seq.sparse`: the numbers rise, but leave some out: no gaps

  /// `headers`: values may be `env:NAME` or `file:PATH`, resolved at each connect. Never shown or logged.
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> subprotocols;  ///< `subprotocols`
  /// `subscribe`: text messages, sent once per connection, in order. The resume message goes before them, or
  /// where an element is exactly `{resume}`.
  std::vector<std::string> subscribe;

  Duration silent_after{};                                ///< `silent_after`; 0: never called silent
  Duration ping_every = std::chrono::seconds(20);         ///< `ping_every`
  Duration dead_after = std::chrono::seconds(45);         ///< `dead_after`
  std::size_t max_message_bytes = std::size_t{1} << 20U;  ///< `max_message_bytes`
  std::string ca_file;                                    ///< `ca_file`

  /// Reads and checks a row. Code::usage with one sentence that names the option; one that is not known is an
  /// error too (it may matter: better parked than wrong).
  [[nodiscard]] static Result<StreamOptions> from_row(const Row& row);
  /// Whether `options` may have one of this name.
  [[nodiscard]] static bool is_option(std::string_view name);
  /// The same checks on values that came from elsewhere, such as a command line.
  [[nodiscard]] Result<void> check() const;
  /// `ws_url`, and `options` with what differs from the defaults. from_row() gives it back as it was.
  [[nodiscard]] Attributes to_row() const;

  bool operator==(const StreamOptions&) const = default;
};

/// The element of `subscribe` that stands for the resume message.
inline constexpr std::string_view resume_mark = "{resume}";

}  // namespace holdfast::worker
