#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/close_policy.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/resource.hpp"
#include "holdfast/sink.hpp"
#include "worker/resume_template.hpp"
#include "worker/sequence.hpp"
#include "worker/stream_options.hpp"
#include "worker/trouble.hpp"
#include "ws/connection.hpp"

namespace holdfast::worker {

class Stream;

/// What the streams of one loop share: the connector, the sink, the memory for one read's records.
///
/// On the loop's thread, but sink_progressed(). Must outlive its streams. All of loop, connector and sink must
/// outlive it.
class StreamGroup {
 public:
  /// `troubled` hears of each stream that begins to be parked or to back off; not of each try.
  StreamGroup(Loop& loop, ws::Connector& connector, Sink& sink, TroubleListener troubled = nullptr);
  ~StreamGroup();
  StreamGroup(const StreamGroup&) = delete;
  StreamGroup& operator=(const StreamGroup&) = delete;

  /// A stream for a grant that comes with start(). What a ResourceFactory for this loop gives back.
  [[nodiscard]] std::unique_ptr<Resource> make_stream();

  /// To be called from the sink's on_progress listener, for each group of that sink. Any thread; many calls in a
  /// row cost one task on the loop, and none where no stream waits. Not after the group was destroyed: close the
  /// sink first.
  void sink_progressed();

 private:
  friend class Stream;
  using Id = std::uint64_t;
  void wait_for_sink(Stream& stream);
  void forget(const Stream& stream);
  void drop_records_of(const Stream& stream);
  void look_soon();
  void wake_waiting();

  Loop& loop_;
  ws::Connector& connector_;
  Sink& sink_;
  const TroubleListener troubled_;
  SeqReader seq_reader_;
  // Of the read under way, empty between reads: they point into the reader's buffers, and end with it.
  std::vector<Record> records_;
  const Stream* reader_ = nullptr;
  std::map<Id, Stream*> waiting_;
  Id last_id_ = 0;
  // A sink moves a hundred times a second and mostly nobody waits for it: then its news costs no task.
  static constexpr unsigned awaited = 1;  // by someone in waiting_
  static constexpr unsigned told = 2;     // since the last look
  std::atomic<unsigned> sink_news_{0};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// One WebSocket connection under a lease: connects, resumes after the last message that the sink was given,
/// passes messages on, connects again when it ends, until it is stopped or its lease ends.
///
///     parked ◄──────────┐
///        │ row_changed  │ bad options, or an answer that will not change
///        ▼              │
///     connecting ──► open ──► subscribed ──► flowing ◄──► silent, paused
///        ▲              │
///        └─ backing_off ┘
///
/// Every effect asks the guard first, and a timer of the stream's own looks at the guard when the belief is to
/// end, whatever store and network do (S7). When it finds the guard ended it revokes it, cuts the connection and
/// does nothing any more ("stopped").
class Stream final : public Resource, private ws::Events {
 public:
  explicit Stream(StreamGroup& group);
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void start(Grant grant) override;
  void row_changed(const Row& row) override;
  void stop(LossReason reason, Instant deadline, std::function<void()> stopped) override;
  [[nodiscard]] Progress progress() const override;

 private:
  friend class StreamGroup;
  enum class Phase { idle, connecting, open, reopening, waiting, parked, stopping, over };

  /// The sink's position when it was given `seq`.
  struct Mark {
    Position position = 0;  // 0: none
    std::int64_t seq = 0;
  };

  // Greetings and heartbeats have no number in many feeds; so many in a row are worth a word.
  static constexpr std::int64_t unnumbered_worth_a_word = 10;

  // Its life, and the lease's end.
  [[nodiscard]] bool configure(const Row& row);
  void begin_after(const Row& row);
  void park(const std::string& why);
  void go_on_stopping();
  void say_goodbye();
  void finish();
  void end_everything();
  [[nodiscard]] bool holds();
  void watch_guard();
  void lease_over();

  // The connection.
  [[nodiscard]] Result<ws::ConnectOptions> connect_options() const;
  void connect();
  void give_up_connecting();
  void on_open(const ws::Opened& opened) override;
  [[nodiscard]] bool say_hello();
  void before_read() override;
  void on_closed(const ws::Closed& closed) override;
  void ended(const ConnectionEnd& end, const std::string& what);
  void cut();

  // Messages (stream_messages.cpp).
  void on_message(const ws::Message& message) override;
  void on_batch_end() override;
  [[nodiscard]] Record& add_record();
  void add(const ws::Message& message, std::int64_t seq);
  void numbers_used_up();
  void add_gap(std::int64_t from, std::int64_t to);
  void hand_over();
  [[nodiscard]] bool unnumbered_changed() const;
  void advance_marks() const;
  void pause();
  void sink_moved();
  void seek_first_checkpoint();

  // Status and timers.
  void set_timer(Instant when, void (Stream::*then)());
  void cancel_timer();
  void set_status(std::string_view status, std::string reason = {});
  void show_trouble(Phase phase, std::string why, const std::string& what_next);
  void show_open_status();
  void watch_silence();

  StreamGroup& group_;
  Loop& loop_;
  const StreamGroup::Id id_;

  Grant grant_;
  std::optional<StreamOptions> options_;  // nothing: the row makes no sense
  std::optional<SeqPointer> seq_pointer_;
  std::optional<ResumeTemplate> resume_template_;

  Phase phase_ = Phase::idle;
  std::unique_ptr<ws::Connection> connection_;
  Reconnect reconnect_;
  Sequence sequence_;
  std::string last_failure_;
  Phase told_ = Phase::idle;  // which trouble the log was told of since it was open: waiting, parked; idle: none
  std::optional<Instant> told_at_;
  bool lacks_checkpoint_ = false;  // the row never had one, and nobody was told of the first
  bool asked_for_flush_ = false;
  bool sequence_known_ = false;  // the row's last_seq could be read
  bool connected_before_ = false;
  bool subscribed_ = false;
  bool paused_ = false;
  bool silent_ = false;
  bool delivered_ = false;  // something new since the connection was opened
  bool shows_repeats_ = false;
  Instant data_at_{};  // when the last message was passed on, or the connection opened
  WallTime batch_at_{};
  std::int64_t unnumbered_in_row_ = 0;
  std::int64_t unnumbered_shown_ = 0;  // of these, when the status was written
  std::int64_t repeats_in_row_ = 0;
  std::int64_t last_repeat_ = 0;
  Tally batch_;  // since the last hand-over

  TimerId guard_timer_ = 0;
  TimerId timer_ = 0;  // whatever the phase waits for
  TimerId silence_timer_ = 0;

  Instant stop_deadline_{};
  std::uint16_t close_code_ = 1001;
  bool closing_ = false;  // the close frame was sent
  std::function<void()> stopped_;

  mutable std::mutex mutex_;  // guards what progress() reads from any thread:
  mutable Mark in_flight_;    // the next to be acknowledged
  mutable Mark newest_;
  mutable std::int64_t acknowledged_seq_ = 0;
  std::string_view status_ = "starting";
  std::string reason_;
  Tally tally_;
  std::optional<WallTime> first_message_at_;
};

}  // namespace holdfast::worker
