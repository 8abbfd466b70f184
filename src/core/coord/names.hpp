#pragma once
#include <cstddef>
#include <string_view>

#include "holdfast/error.hpp"

// How the coordinators' rows and attributes are named (the table in docs/coordinators.md); a task's are in row.hpp.
namespace holdfast::coord {

inline constexpr std::string_view once_prefix = "ONCE#";
inline constexpr std::string_view decision_prefix = "DECISION#";
inline constexpr std::string_view counter_prefix = "COUNTER#";
inline constexpr std::string_view operation_prefix = "OP#";
inline constexpr std::string_view stock_prefix = "STOCK#";
inline constexpr std::string_view queue_prefix = "QUEUE#";
inline constexpr std::string_view message_prefix = "MESSAGE#";
inline constexpr std::string_view dedup_prefix = "DEDUP#";
inline constexpr std::string_view reservation_prefix = "RESERVATION#";

/// Of a reservation: desired_state while it holds goods back, due at its expiry.
inline constexpr std::string_view reserved_state = "RESERVED";
/// The outcome of what it was seen to that it never happens.
inline constexpr std::string_view precluded = "precluded";

inline constexpr std::string_view value = "value";
inline constexpr std::string_view proposer = "proposer";
inline constexpr std::string_view decided_at = "decided_at_ms";

inline constexpr std::string_view delta = "delta";
inline constexpr std::string_view available = "available";
inline constexpr std::string_view items = "items";
inline constexpr std::string_view outcome = "outcome";
inline constexpr std::string_view reserved_until = "reserved_until_ms";
/// What reservations that have ended are remembered for, besides the time that is set when they are made.
inline constexpr std::string_view remember_s = "remember_s";
/// How often something was drawn from a reservation: two that change what is left in it notice each other.
inline constexpr std::string_view draws = "draws";
inline constexpr std::string_view drawn_from = "drawn_from";
/// Which journal's quota it is.
inline constexpr std::string_view quota_of = "quota_of";

inline constexpr std::string_view queue = "queue";
inline constexpr std::string_view group = "group";
inline constexpr std::string_view head = "head";
inline constexpr std::string_view tail = "tail";
inline constexpr std::string_view receives = "receives";
inline constexpr std::string_view leased_last = "leased_last";
inline constexpr std::string_view parked_because = "parked_because";
inline constexpr std::string_view seq = "seq";
inline constexpr std::string_view body = "body";
inline constexpr std::string_view dedup_id = "dedup_id";
inline constexpr std::string_view sent_at = "sent_at_ms";
inline constexpr std::string_view deliver_at = "deliver_at_ms";

inline constexpr std::string_view fingerprint = "fingerprint";
inline constexpr std::string_view result = "result";
inline constexpr std::string_view succeeded = "succeeded";
inline constexpr std::string_view completed_at = "completed_at_ms";

/// Of what callers choose: keys, names of tasks, SKUs, ids. Two of them, and what is put before them, fit into the
/// key of a row (DynamoDB: 2,048 bytes). UTF-8 without control characters: on one line of whatever shows them, and in
/// a URL.
inline constexpr std::size_t name_bytes_most = 500;
/// `what` it is, for people: "A counter's key".
[[nodiscard]] Result<void> check_name(std::string_view what, std::string_view name);

}  // namespace holdfast::coord
