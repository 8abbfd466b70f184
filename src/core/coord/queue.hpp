#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/coord/row_procedure.hpp"
#include "core/lease_write.hpp"
#include "holdfast/coordination.hpp"

namespace holdfast {

// An ordered queue: groups, each in strict order. A group is one row, with the sequence numbers of its first message
// that is not acknowledged (`head`) and of its last (`tail`); it is leased as a whole, so that no two consumers hold
// parts of it at once (F31). Each message is a row of its own. Which groups have something to give is found through
// the index: a group is due at once, when its first message is (delays), or when the lease on it has run out.

/// Nothing where the row is damaged, or no group's.
[[nodiscard]] std::optional<Group> group_in(const Row& row);
/// Names of queues have no "#", since what comes after one is the group's; both have 1 to 500 bytes.
[[nodiscard]] Result<void> check_names(std::string_view queue, std::string_view group);
[[nodiscard]] std::string group_key(std::string_view queue, std::string_view group);
[[nodiscard]] std::string message_key(std::string_view queue, std::string_view group, std::int64_t seq);
/// The row that remembers a message's dedup_id.
[[nodiscard]] std::string dedup_key(std::string_view queue, std::string_view dedup_id);
/// Whether that row still counts, for who wants an id to be known for `window`: whoever of the two, he or its sender,
/// wants that for longer.
[[nodiscard]] bool is_remembered(const Row& sent, Duration window, WallTime now);
/// The state under which the index finds groups that are, or will be, due.
[[nodiscard]] std::string ready_state(std::string_view queue);
[[nodiscard]] std::string parked_state(std::string_view queue);
[[nodiscard]] std::optional<Message> message_in(const Row& row);

// ---- Sending ----

/// One transaction: the group's tail, the message, its id. It needs a store with transactions.
class Send final : public RowProcedure<Sent> {
 public:
  Send(SendOptions options, Instant deadline, Random& random);

 private:
  struct Prepared {};
  Send(SendOptions options, Instant deadline, Random& random, Prepared);
  [[nodiscard]] Plan plan(Now now) override;
  [[nodiscard]] bool is_same(const Row& sent) const;

  const SendOptions options_;
  std::int64_t seq_ = 0;  // as the latest write has it
};

// ---- Receiving ----

struct ReceiveOptions {
  std::string queue;
  std::string group;                               ///< only this one; empty: any that is due
  std::size_t max = 10;                            ///< 1 to 100 messages
  Duration visibility = std::chrono::seconds(30);  ///< the group is ours for so long; extend() for more
  Duration skew = std::chrono::seconds(1);
  /// A message that was given out this often without being acknowledged is poison; nothing: there is no poison. What
  /// counts is how often it was the first of a batch, so where there is poison, what was given out in vain once is
  /// given out alone from then on: nobody is taken for poison for what came after him.
  std::optional<std::int64_t> receives_most;
  Instant wait_until{};  ///< for something to come; in the past: not at all
};
/// Of a move to another queue: the names, and that it is another.
[[nodiscard]] Result<void> check_redrive(std::string_view queue, std::string_view group, std::string_view to);
/// How long a consumer may believe that the group is its own: from before its request was sent, until a tenth of the
/// time before the lease ends, since its clock may run slowly (S4).
[[nodiscard]] Instant believed_until(Instant sent, Duration visibility);

/// Why a group was set aside of which the first message cannot be read, for people.
[[nodiscard]] Error parked_for_damage(std::string_view queue, std::string_view group, const Error& why);

/// Finds a group that is due, leases it, reads the first of its messages. Nothing: there was none. A group whose
/// first message is damaged is parked with the reason, and a group whose own row is damaged is passed over: the
/// others are looked at. Where nothing comes in them, the damage is told: when the wait is over, and after 10 s at
/// the latest.
class Receive final : public Procedure {
 public:
  /// `is_wanted`: asked before each look and each claim; false ends it, with nothing.
  Receive(ReceiveOptions options, WorkerId owner, Instant deadline, Random& random, IsWanted is_wanted = {});

  [[nodiscard]] std::optional<Ask> next(Now now) override;
  void on(Answer answer, Now now) override;
  [[nodiscard]] Instant deadline() const override { return tries_.deadline(); }
  [[nodiscard]] const std::optional<Ended<std::optional<Batch>>>& result() const { return result_; }

 private:
  enum class Step { look, read_group, claim, read_messages, give_back, shorten };
  /// A group that is to be leased, or is: as it was seen latest.
  struct Chosen {
    Row row;
    Group group;
    std::optional<Instant> first_try;  // to claim it in this state
    Instant latest_try{};
    bool is_poison = false;
    std::int64_t last = 0;        // message that the lease is to hold, or holds
    std::int64_t read_to = 0;     // of its messages
    std::optional<Error> damage;  // of its first message
  };

  void looked(Answer answer, Now now);
  void saw_group(const Row* row, Now now);
  void claimed(const Row& row, Instant sent_at);
  void got_messages(const Answer& answer, Now now);
  void first_is_damaged(Error why);
  [[nodiscard]] Update claim(Now now);
  [[nodiscard]] bool goes_alone() const;
  [[nodiscard]] Update give_back(Now now) const;
  [[nodiscard]] Update shorten() const;
  void look_on(Now now);
  void look_again(Now now);
  void end(Ended<std::optional<Batch>> result);

  const ReceiveOptions options_;
  const IsWanted is_wanted_;
  const WorkerId owner_;
  Random& random_;
  const Attempt attempt_;
  Tries tries_;
  Step step_ = Step::look;
  std::vector<std::string> due_;  // group keys that the look found, those to try last in front
  std::string next_page_;         // of the look
  Chosen chosen_;
  std::optional<Batch> batch_;  // to be told when the lease holds no more than that
  Instant until_{};             // S4: of the belief
  WallTime due_again_{};
  std::optional<Error> damage_;        // what was found is parked
  std::optional<Error> seen_damage_;   // of a group's row, in this look
  std::optional<Instant> tell_by_;     // that something is damaged
  std::optional<Instant> rest_until_;  // nothing was there
  bool pausing_ = false;
  std::optional<Ended<std::optional<Batch>>> result_;
};

// ---- What a consumer does with what it was given ----

struct Settlement {
  enum class Kind {
    ack,     ///< the first `count` are done with; the rest stays leased
    nack,    ///< give the group back; it is due again after `delay`
    extend,  ///< lease it for `visibility` from now on
    park,    ///< set the group aside, with all that is in it
  };
  Kind kind = Kind::ack;
  std::int64_t count = 0;
  Duration delay{};
  Duration visibility{};
  std::string reason;           ///< park: for people
  bool is_undelivered = false;  ///< nack: nobody was given it, so that it does not count as received
};
/// One conditional write under the receipt's owner and epoch: what a late consumer says is refused (S2). A receipt is
/// in its consumer's hands, so it is not believed: what it says beyond what the lease holds by its row is rejected.
class Settle final : public RowProcedure<Settled> {
 public:
  Settle(Receipt receipt, Settlement settlement, Instant deadline, Random& random);

 private:
  [[nodiscard]] Plan plan(Now now) override;
  [[nodiscard]] bool was_done_before(const Group& group) const;

  const Receipt receipt_;
  const Settlement settlement_;
};

/// Moves the first message of the batch to another queue, under the same group's name, and goes on behind it: one
/// transaction under the receipt's owner and epoch. The rest of the batch stays leased.
class MoveAway final : public RowProcedure<Settled> {
 public:
  MoveAway(Receipt receipt, std::string to_queue, Instant deadline, Random& random);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const Receipt receipt_;
  const std::string to_queue_;
};

/// Lets a parked group go on. `skip`: without its first message.
class Redrive final : public RowProcedure<Settled> {
 public:
  Redrive(std::string_view queue, std::string_view group, bool skip, Instant deadline, Random& random);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const bool skip_;
};

}  // namespace holdfast
