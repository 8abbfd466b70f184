// One simulated WebSocket connection.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "sim/upstream.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t read_most = 50;  // messages in one read

std::int64_t number_after(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return -1;
  std::int64_t number = -1;
  (void)std::from_chars(text.data() + at + name.size(), text.data() + text.size(), number);
  return number;
}

std::int32_t connection_in(std::string_view target) {
  if (target.empty()) return -1;
  return connection_of_name(target.substr(1, target.find('?') - 1));
}

template <class T, std::size_t size>
T one_of(Random& random, const std::array<T, size>& choices) {
  return choices[random.below(size)];
}

}  // namespace

class SimConnector::Session final : public ws::Connection {
 public:
  Session(SimConnector& net, ws::ConnectOptions options, ws::Events& events)
      : net_(net),
        world_(net.world_),
        connection_(connection_in(options.url.target)),
        options_(std::move(options)),
        events_(events) {
    begin();
  }
  ~Session() override {
    *alive_ = false;
    for (const TimerId timer : {timer_, end_timer_}) net_.loop_.cancel(timer);
    if (mine() == this) mine() = nullptr;
    if (open_) net_.rules_.reading(net_.process_, connection_, false);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool send(std::string_view payload, bool) override {
    if (!open_) return false;
    if (upstream().resume() != Upstream::Resume::message || resumed_after_ >= 0) return true;
    std::int64_t number = 0;
    (void)std::from_chars(payload.data(), payload.data() + payload.size(), number);
    resume_after(number);
    return true;
  }
  void close(std::uint16_t code, std::string_view) override {
    if (!open_) return;
    closing_ = true;
    net_.loop_.cancel(std::exchange(timer_, 0));
    // Sometimes the other side takes its time, or never answers.
    const Duration answer = net_.random_.below(8) == 0 ? options_.limits.close : latency();
    end_at(answer, [this, code] {
      ws::Closed closed;
      closed.kind = ws::Closed::Kind::local;
      closed.code = code;
      end(closed);
    });
  }
  void pause() override {
    paused_ = true;
    net_.loop_.cancel(std::exchange(timer_, 0));
    world_.marks.hit(Mark::paused_by_sink);
  }
  void resume() override {
    paused_ = false;
    if (open_ && !closing_ && !mute_ && timer_ == 0) read_after(latency());
  }

  [[nodiscard]] bool was_sent(std::int64_t from, std::int64_t to) const { return sent_.meets(from, to); }
  [[nodiscard]] std::int64_t resumed_after() const { return resumed_after_; }

 private:
  Session*& mine() { return net_.sessions_[static_cast<std::size_t>(connection_)]; }
  [[nodiscard]] Upstream& upstream() { return net_.upstreams_[static_cast<std::size_t>(connection_)]; }
  [[nodiscard]] Duration latency() { return net_.random_.between(1ms, 80ms); }

  void end_at(Duration after, Task task) {
    net_.loop_.cancel(end_timer_);
    end_timer_ = net_.loop_.call_after(after, std::move(task));
  }
  void end(const ws::Closed& closed) {
    net_.loop_.cancel(std::exchange(timer_, 0));
    net_.loop_.cancel(std::exchange(end_timer_, 0));
    world_.note(Happening::Kind::closed, net_.process_, connection_,
                closed.kind == ws::Closed::Kind::refused ? closed.http_status : closed.code);
    if (std::exchange(open_, false)) net_.rules_.reading(net_.process_, connection_, false);
    events_.on_closed(closed);  // last: it destroys this
  }
  void fail(const char* why) {
    ws::Closed closed;
    closed.error = {Code::unavailable, why};
    end(closed);
  }

  void begin() {
    if (connection_ < 0 || static_cast<std::size_t>(connection_) >= net_.upstreams_.size()) {
      end_at(1ms, [this] { events_.on_closed({}); });
      connection_ = 0;
      return;
    }
    mine() = this;
    net_.rules_.connects(net_.process_, connection_, net_.loop_.instant());
    Random& random = net_.random_;
    if (world_.strikes(Fault::never_opens, random)) return end_at(1h, [this] { fail("at last"); });
    if (world_.upstreams_down) return end_at(latency(), [this] { fail("connection refused"); });
    if (world_.strikes(Fault::refusal, random)) return end_at(latency(), [this] { refuse(); });
    end_at(latency(), [this] {
      end_timer_ = 0;
      opened();
    });
  }
  void refuse() {
    ws::Closed closed;
    closed.kind = ws::Closed::Kind::refused;
    closed.http_status = one_of(net_.random_, std::array{503, 429, 503, 429, 500, 502, 401, 404});
    const bool later = closed.http_status == 429 || closed.http_status == 503;
    if (later && net_.random_.below(2) == 0) {
      closed.retry_after = net_.random_.between(0s, 60s);
      net_.rules_.told_to_wait(net_.process_, connection_, net_.loop_.instant() + *closed.retry_after);
    }
    if (closed.http_status == 404) world_.marks.hit(Mark::parked);
    end(closed);
  }
  void opened() {
    open_ = true;
    net_.rules_.reading(net_.process_, connection_, true);
    const Upstream::Resume how = upstream().resume();
    if (how != Upstream::Resume::message) {
      const std::int64_t number = number_after(options_.url.target, "after=");
      const bool inclusive = how == Upstream::Resume::query_inclusive;
      resume_after(inclusive && number > 0 ? number - 1 : number);
    }
    events_.on_open({});  // may destroy this
  }
  void resume_after(std::int64_t number) {
    world_.note(Happening::Kind::opened, net_.process_, connection_, number);
    resumed_after_ = std::max<std::int64_t>(0, number);
    next_ = resumed_after_ + 1;
    if (!paused_) read_after(latency());
  }

  void read_after(Duration time) {
    timer_ = net_.loop_.call_after(time, [this] {
      timer_ = 0;
      read();
    });
  }
  /// What has come until now, and then when there will be more.
  void read() {
    Random& random = net_.random_;
    if (world_.upstreams_down) return fail("connection reset");
    if (world_.strikes(Fault::drop, random)) return drop();
    if (world_.strikes(Fault::mute, random)) {
      mute_ = true;
      return end_at(options_.limits.dead_after, [this] {
        world_.marks.hit(Mark::fell_silent);
        fail("no frame for 45 s");
      });
    }
    events_.before_read();  // as the engine does; it may find that there is no room
    if (paused_) return;
    const Instant now = world_.now();
    const std::int64_t newest = upstream().newest(now);
    if (const std::int64_t oldest = upstream().oldest(now); next_ < oldest) {
      world_.marks.hit(Mark::history_forgotten);
      world_.inject(Fault::forget);
      next_ = oldest;
    }
    const std::int64_t last = std::min(newest, next_ + read_most - 1);
    // A message may end this stream, and with it this session.
    const std::shared_ptr<bool> alive = alive_;
    hostilities(newest);
    while (*alive && next_ <= last && open_ && !closing_) {
      const std::int64_t seq = next_++;
      if (upstream().skipped.meets(seq, seq)) continue;
      if (world_.strikes(Fault::gap, random)) {
        upstream().skipped.add(seq, seq + static_cast<std::int64_t>(random.below(4)));
        continue;
      }
      deliver(seq);
      if (*alive && world_.strikes(Fault::garbage, random)) garbage();
    }
    if (!*alive) return;
    events_.on_batch_end();
    if (!*alive || paused_ || closing_ || !open_ || timer_ != 0) return;
    // A read brings what has come since the last one: one message or a few.
    const Instant more = upstream().made_at(next_);
    read_after(more <= now ? 1ms : more - now + random.between(0ms, 2 * upstream().every()));
  }
  /// Repeats of what was sent, and falls.
  void hostilities(std::int64_t newest) {
    Random& random = net_.random_;
    const std::shared_ptr<bool> alive = alive_;
    if (next_ > 1 && world_.strikes(Fault::repeat, random)) {
      const std::int64_t from = std::max<std::int64_t>(1, next_ - 1 - static_cast<std::int64_t>(random.below(5)));
      for (std::int64_t seq = from; *alive && seq < next_ && open_; ++seq) {
        world_.marks.hit(Mark::repeats_dropped);
        if (!upstream().skipped.meets(seq, seq)) deliver(seq);
      }
    }
    if (*alive && open_ && next_ > 1 && newest >= next_ && world_.strikes(Fault::move_back, random)) {
      world_.marks.hit(Mark::went_back);
      next_ = std::max(upstream().oldest(world_.now()), next_ - static_cast<std::int64_t>(random.below(20)));
    }
  }
  void deliver(std::int64_t seq) {
    sent_.add(seq, seq);
    constexpr std::string_view before = R"({"seq":)";
    constexpr std::string_view after = R"(,"data":"x"})";
    std::array<char, 48> text{};
    char* end = std::copy(before.begin(), before.end(), text.data());
    end = std::to_chars(end, text.data() + text.size(), seq).ptr;
    end = std::copy(after.begin(), after.end(), end);
    events_.on_message({false, std::string_view(text.data(), static_cast<std::size_t>(end - text.data()))});
  }
  void garbage() {
    world_.marks.hit(Mark::unnumbered);
    switch (net_.random_.below(4)) {
      case 0:
        return events_.on_message({false, "no JSON"});
      case 1:
        return events_.on_message({false, R"({"seq":-1})"});
      case 2:
        return events_.on_message({true, R"({"seq":5})"});
      default:
        return events_.on_message({false, R"({"heartbeat":true})"});
    }
  }
  void drop() {
    Random& random = net_.random_;
    if (random.below(2) == 0) return fail("connection reset");
    ws::Closed closed;
    closed.kind = ws::Closed::Kind::closed;
    closed.code = one_of(random, std::array<std::uint16_t, 8>{1000, 1001, 1005, 1011, 1012, 1013, 4000, 1008});
    if (closed.code == 1008) world_.marks.hit(Mark::parked);
    end(closed);
  }

  SimConnector& net_;
  World& world_;
  std::int32_t connection_;
  const ws::ConnectOptions options_;
  ws::Events& events_;
  bool open_ = false;
  bool closing_ = false;
  bool paused_ = false;
  bool mute_ = false;
  std::int64_t resumed_after_ = -1;
  std::int64_t next_ = 1;
  Coverage sent_;
  TimerId timer_ = 0;
  TimerId end_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

SimConnector::SimConnector(World& world, Rules& rules, std::vector<Upstream>& upstreams, Loop& loop,
                           std::int16_t process, std::uint64_t seed)
    : world_(world),
      rules_(rules),
      upstreams_(upstreams),
      loop_(loop),
      process_(process),
      random_(seed),
      sessions_(upstreams.size()) {}

SimConnector::~SimConnector() = default;

std::unique_ptr<ws::Connection> SimConnector::connect(ws::ConnectOptions options, ws::Events& events) {
  return std::make_unique<Session>(*this, std::move(options), events);
}

bool SimConnector::was_sent(std::int32_t connection, std::int64_t from, std::int64_t to) const {
  const Session* session = sessions_[static_cast<std::size_t>(connection)];
  return session != nullptr && session->was_sent(from, to);
}

std::int64_t SimConnector::resumed_after(std::int32_t connection) const {
  const Session* session = sessions_[static_cast<std::size_t>(connection)];
  return session == nullptr ? -1 : session->resumed_after();
}

}  // namespace holdfast::sim
