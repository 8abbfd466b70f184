#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holdfast/flat_map.hpp"

namespace holdfast {

/// The value of one attribute. Integers are 64 bits; `double` exists so that other programs' items survive a
/// round trip, no rule of ours uses it. Equality is by type and value; 1 and 1.0 differ.
class Value {
 public:
  /// What a store found and has no type for here (a binary, a set, a number with more digits than fit): it is there,
  /// and is not to be written. No store takes it back, so that what could only be read in part is never overwritten.
  struct Unreadable {
    std::string what;  ///< for people: "a set of texts"
    bool operator==(const Unreadable&) const = default;
  };
  using List = std::vector<Value>;
  using Map = FlatMap<Value>;
  using Data = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, List, Map, Unreadable>;

  Value() = default;
  Value(std::nullptr_t) {}                                      // NOLINT(google-explicit-constructor)
  Value(bool value) : data_(value) {}                           // NOLINT(google-explicit-constructor)
  Value(int value) : data_(std::int64_t{value}) {}              // NOLINT(google-explicit-constructor)
  Value(std::int64_t value) : data_(value) {}                   // NOLINT(google-explicit-constructor)
  Value(double value) : data_(value) {}                         // NOLINT(google-explicit-constructor)
  Value(std::string value) : data_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Value(std::string_view value) : data_(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  Value(const char* value) : data_(std::string(value)) {}       // NOLINT(google-explicit-constructor)
  Value(List value) : data_(std::move(value)) {}                // NOLINT(google-explicit-constructor)
  Value(Map value) : data_(std::move(value)) {}                 // NOLINT(google-explicit-constructor)
  Value(Unreadable value) : data_(std::move(value)) {}          // NOLINT(google-explicit-constructor)

  [[nodiscard]] const Data& data() const { return data_; }
  [[nodiscard]] const std::int64_t* as_int() const { return std::get_if<std::int64_t>(&data_); }
  [[nodiscard]] const std::string* as_string() const { return std::get_if<std::string>(&data_); }
  [[nodiscard]] const bool* as_bool() const { return std::get_if<bool>(&data_); }
  [[nodiscard]] const Map* as_map() const { return std::get_if<Map>(&data_); }
  [[nodiscard]] const List* as_list() const { return std::get_if<List>(&data_); }
  bool operator==(const Value&) const = default;

 private:
  Data data_ = nullptr;
};

using Attributes = Value::Map;

/// One item of the table. The key is not among the attributes.
struct Row {
  std::string key{};
  Attributes attributes{};

  [[nodiscard]] const Value* find(std::string_view name) const;
  /// The attribute if it is there and of that type; otherwise the fallback. A missing number is 0 unless told.
  [[nodiscard]] std::int64_t number(std::string_view name, std::int64_t fallback = 0) const;
  [[nodiscard]] std::string_view text(std::string_view name) const;  ///< valid while the row lives and is unchanged
  bool operator==(const Row&) const = default;
};

/// The names that rows are written with (the table in docs/architecture.md).
namespace attribute {
inline constexpr std::string_view desired_state = "desired_state";
inline constexpr std::string_view expires_at = "lease_expires_at_ms";
inline constexpr std::string_view owner = "lease_owner";
inline constexpr std::string_view epoch = "lease_epoch";
inline constexpr std::string_view attempt = "lease_attempt";
/// The number of the latest renewal under this epoch: it tells a late duplicate of an older one (docs/adr/0017).
inline constexpr std::string_view renewal = "lease_renewal";
inline constexpr std::string_view url = "ws_url";
inline constexpr std::string_view last_seq = "last_seq";
inline constexpr std::string_view options = "options";
// For people and reports; no rule depends on them.
inline constexpr std::string_view status = "status";                     ///< of what is held: Progress::status
inline constexpr std::string_view status_reason = "status_reason";       ///< Progress::reason
inline constexpr std::string_view released_at = "lease_released_at_ms";  ///< at the last release; removed by a claim
// Of worker rows.
inline constexpr std::string_view incarnation = "incarnation";
inline constexpr std::string_view beat = "beat";
inline constexpr std::string_view capacity = "capacity";
inline constexpr std::string_view held = "held";
inline constexpr std::string_view address = "address";
inline constexpr std::string_view draining = "draining";
inline constexpr std::string_view tombstone_expires_at = "tombstone_expires_at";  ///< seconds: the table's TTL
}  // namespace attribute

namespace state {
inline constexpr std::string_view started = "STARTED";
inline constexpr std::string_view stopped = "STOPPED";
inline constexpr std::string_view removed = "REMOVED";
inline constexpr std::string_view worker = "WORKER";
inline constexpr std::string_view task = "TASK";
inline constexpr std::string_view feed = "FEED";  ///< of the row of who reads the table's changes for all
}  // namespace state

namespace key_prefix {
inline constexpr std::string_view connection = "CONN#";
inline constexpr std::string_view worker = "WORKER#";
inline constexpr std::string_view task = "TASK#";
inline constexpr std::string_view feed = "FEED#";
}  // namespace key_prefix

}  // namespace holdfast
