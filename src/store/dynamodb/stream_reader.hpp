#pragma once
#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/random.hpp"
#include "holdfast/store.hpp"
#include "holdfast/types.hpp"
#include "store/dynamodb/call.hpp"
#include "store/dynamodb/table_url.hpp"

namespace holdfast::store::dynamodb {

/// Reads a table's stream, as pure rules: says which call to make, and is told what it came to. No I/O, no clock;
/// randomness from the generator handed in.
///
/// The table says which stream is its (DescribeTable), the stream which shards it has (DescribeStream, in pages), a
/// shard from where on to read (GetShardIterator), and what happened since (GetRecords). It begins with what is new
/// in the shards that are open, and says once, as soon as it stands there, that anything may have changed before. A
/// shard that ends (they do after hours, or are split) is followed by its children, read from their beginning, and
/// only after their parent: else an older state of a row could come after a newer one.
///
/// What goes wrong is mended by itself: an iterator that has expired is asked for again from the last record on;
/// where records were trimmed before they were read, reading goes on with what is new, and anything may have changed;
/// a shard or stream that is gone is looked for again from the table on. A table without a stream is asked again
/// after minutes.
///
/// Bounded (S10): a call has a deadline, one shard one call at a time, all together `in_flight_max`; a shard with
/// nothing new is read again after a random time that grows to `idle_max`, one that fails after one that grows to
/// `failed_max`.
///
/// The shell: `while (auto ask = reader.poll(now))` make the call, then answered() exactly once; again at next().
class StreamReader {
 public:
  static constexpr std::size_t in_flight_max = 8;
  static constexpr std::size_t records_per_read = 1000;  ///< the most that DynamoDB gives
  static constexpr std::size_t pages_max = 50;           ///< of a list of shards, 100 each
  static constexpr Duration call_limit = std::chrono::seconds(5);
  static constexpr Duration idle_min = std::chrono::milliseconds(200);
  static constexpr Duration idle_max = std::chrono::milliseconds(800);
  static constexpr Duration failed_min = std::chrono::milliseconds(500);
  static constexpr Duration failed_max = std::chrono::seconds(30);

  struct Ask {
    std::uint64_t id = 0;
    Call call;
    bool of_table = false;  ///< DescribeTable, which the table's endpoint answers; else the stream's does
    Instant deadline{};
  };

  enum class State {
    unknown,  ///< the table was not asked yet, or could not be
    off,      ///< there is no stream, or none that can be read; no_feed() says why
    on,       ///< it is being read, or tried to be
  };

  StreamReader(const TableOptions& options, Random& random) : options_(options), random_(random) {}

  [[nodiscard]] std::optional<Ask> poll(Instant now);
  /// What the answer says has changed: nothing, some rows, or any.
  [[nodiscard]] std::size_t answered(std::uint64_t id, const CallReply& reply, Instant now);
  /// When poll() has something by itself; nothing while all that can be asked is being asked.
  [[nodiscard]] std::optional<Instant> next() const;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const std::string& no_feed() const { return no_feed_; }

 private:
  enum class From : std::uint8_t { latest, horizon, after_last };
  enum class Phase : std::uint8_t {
    waiting,    // for the end of its parent
    iterating,  // has to be given an iterator
    reading,
    done,  // read to its end, or not to be read
  };
  struct Shard {
    std::string parent;
    Phase phase = Phase::waiting;
    From from = From::horizon;
    std::string iterator;
    std::string last;  // number of the last record
    Instant due{};
    Duration idle = idle_min;
    unsigned failures = 0;
    std::uint64_t asked = 0;  // the call under way
    bool listed = true;
    bool was_read = false;  // to its end: it has children, or will have
  };
  struct Listed {
    std::string id, parent;
    bool closed = false;
  };

  [[nodiscard]] Ask ask(const char* operation, std::string body, Instant now);
  [[nodiscard]] Ask ask_table(Instant now);
  [[nodiscard]] Ask ask_shards(Instant now);
  [[nodiscard]] Ask ask_shard(const std::string& id, Shard& shard, Instant now);
  [[nodiscard]] std::map<std::string, Shard>::iterator earliest();

  [[nodiscard]] std::size_t table_answered(const CallReply& reply, Instant now);
  [[nodiscard]] std::size_t list_answered(const CallReply& reply, Instant now);
  [[nodiscard]] std::size_t iterator_answered(Shard& shard, const CallReply& reply, Instant now);
  [[nodiscard]] std::size_t records_answered(Shard& shard, const CallReply& reply, Instant now);
  [[nodiscard]] std::size_t shard_failed(Shard& shard, const CallReply& reply, Instant now);
  [[nodiscard]] bool take_page(const boost::json::object& stream);
  void take_list(Instant now);
  void start_children(Instant now);
  [[nodiscard]] bool lacks_children() const;
  void begin_anew(Instant now);
  [[nodiscard]] std::size_t turn_off(std::string why, Instant now);
  [[nodiscard]] bool is_of_use(const boost::json::value& record) const;
  [[nodiscard]] Duration after_failure(unsigned& failures);

  const TableOptions& options_;
  Random& random_;
  State state_ = State::unknown;
  std::string no_feed_;
  std::uint64_t last_id_ = 0;
  std::size_t in_flight_ = 0;
  unsigned failures_ = 0;  // of questions about table and stream, in a row

  std::string stream_;  // its ARN; empty: the table is to be asked
  std::uint64_t table_asked_ = 0;
  Instant table_due_{};
  std::uint64_t list_asked_ = 0;
  Instant list_due_{};
  bool has_list_ = false;
  std::vector<Listed> pages_;  // of the list under way
  std::string page_;           // the last shard of its pages so far
  std::size_t pages_read_ = 0;
  unsigned relists_ = 0;  // in a row, for children that are not there yet
  std::map<std::string, Shard> shards_;
};

}  // namespace holdfast::store::dynamodb
