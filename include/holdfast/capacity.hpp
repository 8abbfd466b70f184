#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace holdfast {

/// What a request is for. What requests cost is counted by it; nothing else depends on it.
enum class Purpose : std::uint8_t {
  other,       ///< counted by the name of the store's own operation: "GetItem"
  claim,       ///< of a lease
  renew,       ///< of a lease, with the checkpoint that rides on it
  checkpoint,  ///< a renewal out of turn, made for its checkpoint
  release,     ///< of a lease
  session,     ///< a worker's own row
  look,        ///< for rows that are due
};
[[nodiscard]] std::string_view to_string(Purpose purpose);

/// What requests of one kind have cost so far, in DynamoDB's units and as the server counted them
/// (ReturnConsumedCapacity=INDEXES). Which of them are paid for, and how, is the table's billing mode.
struct Consumed {
  std::uint64_t requests = 0;
  std::uint64_t attempts = 0;   ///< that were sent, or tried to be; retries included
  std::uint64_t throttled = 0;  ///< of these, those that the server refused for now
  /// Answers that said what they cost. A write whose condition failed costs units, too, but its answer does not say
  /// how many: they are in no figure here.
  std::uint64_t counted = 0;
  double table_write_units = 0;
  double index_write_units = 0;  ///< of all indexes
  double table_read_units = 0;
  double index_read_units = 0;

  Consumed& operator+=(const Consumed& other);
  [[nodiscard]] double write_units() const { return table_write_units + index_write_units; }
  [[nodiscard]] double read_units() const { return table_read_units + index_read_units; }
};
/// "renew" -> what renewals cost. By to_string(Purpose), or the name of the store's operation. What was never asked
/// for is left out.
using ConsumedByKind = std::map<std::string, Consumed, std::less<>>;

}  // namespace holdfast
