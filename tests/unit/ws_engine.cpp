// An open connection against servers that the test plays itself: what RFC 6455 asks of a client, and what servers do
// wrong.
#include <functional>
#include <vector>

#include "support/ws_engine_test.hpp"

namespace holdfast::ws {
namespace {

using namespace std::chrono_literals;

using WsEngine = WsEngineTest;

// ---- frames

TEST_F(WsEngine, sends_masked_frames_of_every_length) {
  RawPeer peer = open();
  for (const std::size_t size : {0U, 5U, 125U, 126U, 70000U}) {
    const std::string payload(size, 'p');
    ASSERT_TRUE(owner.connection->send(payload, size == 5));
    const auto [first, got] = peer.take_frame();
    EXPECT_EQ(first, size == 5 ? 0x82U : 0x81U);
    EXPECT_EQ(got, payload);
  }
}

TEST_F(WsEngine, a_long_message_in_many_reads_is_one_message_and_batches_end) {
  RawPeer peer = open();
  std::string payload(1 << 20, 'x');
  payload[12345] = 'y';
  ASSERT_TRUE(peer.send(frame(0x81, payload) + frame(0x81, "next")));
  ASSERT_TRUE(wait_messages(2));
  EXPECT_EQ(owner.messages[0], "t:" + payload);
  EXPECT_EQ(owner.messages[1], "t:next");
  EXPECT_TRUE(run_until(loop, [&] { return owner.batches >= 1; }));
  EXPECT_LE(owner.batches, 2);
}

TEST_F(WsEngine, a_ping_is_answered_with_its_payload_even_between_fragments) {
  RawPeer peer = open();
  ASSERT_TRUE(peer.send(frame(0x01, "a") + frame(0x89, "are you there")));
  EXPECT_EQ(peer.take_frame(), (std::pair<unsigned, std::string>{0x8A, "are you there"}));
  ASSERT_TRUE(peer.send(frame(0x80, "b")));
  ASSERT_TRUE(wait_messages(1));
  EXPECT_EQ(owner.messages[0], "t:ab");
}

TEST_F(WsEngine, of_a_flood_of_pings_the_latest_is_answered_and_memory_stays_bounded) {
  RawPeer peer = open();
  std::string flood;
  for (int i = 0; i < 2000; ++i) flood += frame(0x89, std::to_string(i) + std::string(100, '.'));
  // The server does not read: answers fill the socket, then only the latest waits.
  for (int round = 0; round < 100; ++round) ASSERT_TRUE(peer.send(flood));
  ASSERT_TRUE(peer.send(frame(0x89, "last")));
  ASSERT_TRUE(peer.send(frame(0x81, "alive")));
  ASSERT_TRUE(wait_messages(1));
  std::string latest;
  std::size_t answers = 0;
  while (latest != "last") {
    const auto [first, payload] = peer.take_frame();
    ASSERT_EQ(first, 0x8AU) << payload;
    latest = payload;
    ++answers;
  }
  EXPECT_LT(answers, 200001U);
}

// ---- the end

TEST_F(WsEngine, a_close_frame_is_answered_with_its_code_and_told_with_its_reason) {
  RawPeer peer = open();
  ASSERT_TRUE(peer.send(frame(0x81, "last") + frame(0x88, close_payload(1008, "policy")) + frame(0x81, "never")));
  const Closed& closed = wait_closed();
  EXPECT_EQ(owner.messages, std::vector<std::string>{"t:last"});
  EXPECT_EQ(owner.batches, 1) << "views end before the owner is told";
  EXPECT_EQ(closed.kind, Kind::closed);
  EXPECT_EQ(closed.code, 1008);
  EXPECT_EQ(closed.reason, "policy");
  EXPECT_EQ(peer.take_frame(), (std::pair<unsigned, std::string>{0x88, close_payload(1008)}));
  EXPECT_TRUE(peer.receive_end()) << "our half is closed behind our close frame";
  peer.close();
  EXPECT_TRUE(wait_gone());
}

TEST_F(WsEngine, a_close_frame_without_a_code_is_1005_and_answered_without_one) {
  RawPeer peer = open();
  ASSERT_TRUE(peer.send(frame(0x88, "")));
  EXPECT_EQ(wait_closed().code, 1005);
  EXPECT_EQ(peer.take_frame(), (std::pair<unsigned, std::string>{0x88, ""}));
}

TEST_F(WsEngine, the_answer_to_a_close_frame_goes_out_though_the_owner_lets_go_at_once) {
  owner.when_closed = [&] { owner.connection.reset(); };
  RawPeer peer = open();
  ASSERT_TRUE(peer.send(frame(0x88, close_payload(1001))));
  wait_closed();
  EXPECT_EQ(peer.take_frame(), (std::pair<unsigned, std::string>{0x88, close_payload(1001)}));
  peer.close();
  EXPECT_TRUE(wait_gone());
}

TEST_F(WsEngine, a_server_that_never_ends_the_stream_after_the_close_is_cut_off) {
  ConnectOptions with = options();
  with.limits.close = 50ms;
  RawPeer peer = open(with);
  ASSERT_TRUE(peer.send(frame(0x88, close_payload(1000))));
  wait_closed();
  EXPECT_TRUE(wait_gone());
}

TEST_F(WsEngine, our_close_waits_for_theirs_and_drops_what_comes_in_between) {
  RawPeer peer = open();
  owner.connection->close(1001, "going away");
  EXPECT_FALSE(owner.connection->send("late", false));
  EXPECT_EQ(peer.take_frame(), (std::pair<unsigned, std::string>{0x88, close_payload(1001, "going away")}));
  ASSERT_TRUE(peer.send(frame(0x81, "still talking")));
  run_for(loop, 20ms);
  EXPECT_FALSE(owner.is_closed());
  ASSERT_TRUE(peer.send(frame(0x88, close_payload(1001, "going away"))));
  const Closed& closed = wait_closed();
  EXPECT_EQ(closed.kind, Kind::local);
  EXPECT_EQ(closed.code, 1001);
  EXPECT_TRUE(owner.messages.empty());
}

TEST_F(WsEngine, our_close_has_a_limit) {
  ConnectOptions with = options();
  with.limits.close = 50ms;
  RawPeer peer = open(with);
  owner.connection->close(1000, "");
  const Closed& closed = wait_closed();
  EXPECT_EQ(closed.kind, Kind::local);
  EXPECT_EQ(closed.code, 1006);
  EXPECT_TRUE(has(closed.error.detail, "did not answer our close frame within 50 ms"));
  EXPECT_TRUE(wait_gone());
}

TEST_F(WsEngine, a_stream_that_ends_without_a_close_frame_is_a_failure) {
  RawPeer peer = open();
  peer.close();
  const Closed& closed = wait_closed();
  EXPECT_EQ(closed.kind, Kind::failed);
  EXPECT_EQ(closed.code, 1006);
  EXPECT_TRUE(has(closed.error.detail, "without a close frame"));
}

TEST_F(WsEngine, a_half_closed_stream_is_an_end) {
  RawPeer peer = open();
  ASSERT_TRUE(peer.send(frame(0x81, "last")));
  peer.half_close();
  EXPECT_EQ(wait_closed().kind, Kind::failed);
  EXPECT_EQ(owner.messages.size(), 1U);
  EXPECT_TRUE(peer.receive_end());
}

TEST_F(WsEngine, a_reset_in_the_middle_of_a_frame_is_a_failure) {
  RawPeer peer = open();
  ASSERT_TRUE(peer.send(frame(0x81, std::string(5000, 'x')).substr(0, 3000)));
  run_for(loop, 20ms);
  peer.reset();
  EXPECT_EQ(wait_closed().kind, Kind::failed);
  EXPECT_TRUE(has(owner.closed[0].error.detail, "reset")) << owner.closed[0].error.detail;
}

TEST_F(WsEngine, the_close_frame_of_a_server_that_is_gone_is_found_though_writing_failed) {
  ConnectOptions with = options();
  with.limits.ping_every = 1h;
  RawPeer peer = open(with);
  // Written while the client looks away; then its stream is reset by what the client sends.
  ASSERT_GT(peer.send_some(frame(0x88, close_payload(1013, "later"))), 0U);
  peer.close();
  EXPECT_TRUE(owner.connection->send("a", false));
  owner.connection->send("b", false);
  const Closed& closed = wait_closed();
  EXPECT_EQ(closed.kind, Kind::closed);
  EXPECT_EQ(closed.code, 1013);
}

// ---- protocol errors: told at once, and to the server by code

void expect_broken(const Closed& closed, RawPeer& peer, unsigned code) {
  EXPECT_EQ(closed.kind, Kind::protocol);
  EXPECT_EQ(closed.code, code);
  EXPECT_FALSE(closed.reason.empty());
  const auto [first, payload] = peer.take_frame();
  EXPECT_EQ(first, 0x88U);
  EXPECT_TRUE(payload.starts_with(close_payload(code))) << closed.reason;
}

TEST_F(WsEngine, a_protocol_error_closes_with_1002) {
  RawPeer peer = open();
  ASSERT_TRUE(peer.send(frame(0x81, "fine") + frame(0x83, "reserved")));
  expect_broken(wait_closed(), peer, 1002);
  EXPECT_EQ(owner.messages.size(), 1U);
}

TEST_F(WsEngine, text_that_is_not_utf8_closes_with_1007) {
  RawPeer peer = open();
  ASSERT_TRUE(peer.send(frame(0x81, "\xFF")));
  expect_broken(wait_closed(), peer, 1007);
}

TEST_F(WsEngine, f44_a_message_of_1_gib_closes_with_1009_as_soon_as_it_is_announced) {
  RawPeer peer = open();
  ASSERT_TRUE(peer.send(std::string("\x82\x7F\0\0\0\0\x40\0\0\0", 10) + std::string(1000, 'x')));
  expect_broken(wait_closed(), peer, 1009);
  // The bomb goes on; the client does not take it all.
  std::size_t sent = 0;
  const std::string more(65536, 'x');
  EXPECT_TRUE(run_until(loop, [&] {
    sent += peer.send_some(more);
    return engine->connections() == 0;
  }));
  EXPECT_LT(sent, std::size_t{64} << 20U);
}

TEST_F(WsEngine, f44_endless_fragments_close_with_1009_at_the_limit) {
  ConnectOptions with = options();
  with.limits.message_bytes = 10000;
  RawPeer peer = open(with);
  ASSERT_TRUE(peer.send(frame(0x01, "x")));
  for (int i = 0; i < 200 && !owner.is_closed(); ++i) (void)peer.send_some(frame(0x00, std::string(100, 'x')));
  expect_broken(wait_closed(), peer, 1009);
}

// ---- liveness

TEST_F(WsEngine, f33_a_server_that_says_nothing_is_pinged_and_given_up) {
  ConnectOptions with = options();
  with.limits.ping_every = 20ms;
  with.limits.dead_after = 150ms;
  RawPeer peer = open(with);
  EXPECT_EQ(peer.take_frame(), (std::pair<unsigned, std::string>{0x89, ""}));
  const Closed& closed = wait_closed();
  EXPECT_EQ(closed.kind, Kind::failed);
  EXPECT_TRUE(has(closed.error.detail, "nothing was heard from the server for 150 ms")) << closed.error.detail;
}

TEST_F(WsEngine, f34_a_quiet_server_that_answers_pings_is_alive) {
  ConnectOptions with = options();
  with.limits.ping_every = 20ms;
  with.limits.dead_after = 5s;
  RawPeer peer = open(with);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(peer.take_frame().first, 0x89U);
    ASSERT_TRUE(peer.send(frame(0x8A, "")));
  }
  EXPECT_FALSE(owner.is_closed());
}

TEST_F(WsEngine, f16_connections_opened_together_do_not_ping_together) {
  ConnectOptions with = options();
  with.limits.ping_every = 400ms;
  std::vector<std::unique_ptr<Owner>> owners;
  std::vector<RawPeer> peers;
  for (int i = 0; i < 20; ++i) {
    owners.push_back(std::make_unique<Owner>());
    owners.back()->connection = engine->connect(with, *owners.back());
    peers.push_back(server.accept());
    peers.back().upgrade();
  }
  // They ping within one interval, but there is a time when some have and some have not.
  const auto pinged = [&] {
    std::size_t count = 0;
    for (RawPeer& peer : peers) {
      peer.take();
      count += peer.received.empty() ? 0 : 1;
    }
    return count;
  };
  EXPECT_TRUE(run_until(loop, [&] {
    const std::size_t count = pinged();
    return count > 0 && count < peers.size();
  }));
  EXPECT_TRUE(run_until(loop, [&] { return pinged() == peers.size(); }));
}

// ---- backpressure

TEST_F(WsEngine, f39_a_paused_connection_reads_nothing_and_holds_the_server_back) {
  RawPeer peer = open();
  owner.connection->pause();
  const std::string message = frame(0x82, std::string(60000, 'x'));
  std::size_t sent = 0;
  std::size_t idle = 0;
  while (idle < 20 && sent < (std::size_t{200} << 20U)) {
    const std::size_t now = peer.send_some(std::string_view(message).substr(sent % message.size()));
    sent += now;
    idle = now == 0 ? idle + 1 : 0;
    run_for(loop, 1ms);
  }
  EXPECT_LT(sent, std::size_t{100} << 20U) << "TCP held the server back";
  EXPECT_TRUE(owner.messages.empty());
  owner.connection->resume();
  ASSERT_TRUE(wait_messages(sent / message.size()));
}

TEST_F(WsEngine, f39_owners_are_asked_before_each_read_so_many_connections_bring_no_more_than_one_read_does) {
  constexpr std::size_t connections = 20;
  constexpr std::size_t each = 100;
  bool full = false;
  std::size_t taken = 0;
  std::vector<std::unique_ptr<Owner>> owners;
  std::vector<RawPeer> peers;
  for (std::size_t i = 0; i < connections; ++i) {
    owners.push_back(std::make_unique<Owner>());
    Owner* own = owners.back().get();
    own->connection = engine->connect(options(), *own);
    peers.push_back(server.accept());
    peers.back().upgrade();
    ASSERT_TRUE(run_until(loop, [&] { return own->opened.has_value(); }));
    own->when_before_read = [&full, own] {
      if (full) own->connection->pause();
    };
    own->when_message = [&full, &taken] {
      full = true;  // as a sink whose buffer is full
      ++taken;
    };
  }
  std::string bytes;
  for (std::size_t i = 0; i < each; ++i) bytes += frame(0x81, std::string(1000, 'x'));
  for (RawPeer& peer : peers) ASSERT_EQ(peer.send_some(bytes), bytes.size());
  ASSERT_TRUE(run_until(loop, [&] { return taken > 0; }));
  run_for(loop, 100ms);
  EXPECT_LE(taken, each) << "those of one connection";
  full = false;
  for (const auto& own : owners) {
    own->when_message = [&taken] { ++taken; };
    own->connection->resume();
  }
  EXPECT_TRUE(run_until(loop, [&] { return taken == connections * each; })) << "and nothing was left out";
}

TEST_F(WsEngine, while_paused_liveness_rests_and_it_starts_again_on_resume) {
  ConnectOptions with = options();
  with.limits.ping_every = 20ms;
  with.limits.dead_after = 60ms;
  owner.when_open = [&] { owner.connection->pause(); };
  RawPeer peer = open(with);
  run_for(loop, 200ms);
  EXPECT_FALSE(owner.is_closed());
  peer.take();
  EXPECT_EQ(peer.received, "") << "no pings either";
  owner.connection->resume();
  EXPECT_EQ(wait_closed().kind, Kind::failed);
}

TEST_F(WsEngine, pausing_inside_a_message_still_delivers_the_rest_of_the_read) {
  owner.when_message = [&] { owner.connection->pause(); };
  connect(options());
  RawPeer peer = server.accept();
  peer.upgrade(frame(0x81, "a") + frame(0x81, "b"));
  ASSERT_TRUE(wait_messages(2));
  ASSERT_TRUE(peer.send(frame(0x81, "c")));
  run_for(loop, 30ms);
  EXPECT_EQ(owner.messages.size(), 2U);
  owner.when_message = nullptr;
  owner.connection->resume();
  ASSERT_TRUE(wait_messages(3));
}

TEST_F(WsEngine, the_send_queue_is_bounded_and_drains_in_order) {
  ConnectOptions with = options();
  with.limits.send_queue_bytes = 200000;
  RawPeer peer = open(with);
  const std::string payload(50000, 'q');
  std::size_t accepted = 0;
  while (accepted < 1000 && owner.connection->send(std::to_string(accepted) + payload, true)) ++accepted;
  EXPECT_LT(accepted, 1000U) << "a server that does not read fills the queue";
  EXPECT_FALSE(owner.connection->send(std::string(200001, 'x'), true));
  for (std::size_t i = 0; i < accepted; ++i) {
    const auto [first, got] = peer.take_frame();
    ASSERT_EQ(first, 0x82U);
    ASSERT_EQ(got, std::to_string(i) + payload);
  }
  EXPECT_TRUE(owner.connection->send("again", false));
  EXPECT_EQ(peer.take_frame().second, "again");
}

// ---- destruction inside events

/// Each hangs something on one of an owner's events.
const std::vector<std::function<void(Owner&, std::function<void()>)>> every_event = {
    [](Owner& o, std::function<void()> f) { o.when_open = std::move(f); },
    [](Owner& o, std::function<void()> f) { o.when_message = std::move(f); },
    [](Owner& o, std::function<void()> f) { o.when_batch_end = std::move(f); },
    [](Owner& o, std::function<void()> f) { o.when_closed = std::move(f); },
};

TEST_F(WsEngine, the_connection_may_be_destroyed_inside_any_event) {
  for (const auto& hook : every_event) {
    Owner mine;
    bool gone = false;
    hook(mine, [&] {
      mine.connection.reset();
      gone = true;
    });
    mine.connection = engine->connect(options(), mine);
    RawPeer peer = server.accept();
    peer.upgrade(frame(0x81, "a") + frame(0x01, "frag") + frame(0x80, "ment") + frame(0x81, "b") +
                 frame(0x88, close_payload(1000)));
    EXPECT_TRUE(run_until(loop, [&] { return gone; }));
    peer.close();
    EXPECT_TRUE(wait_gone());
  }
}

TEST_F(WsEngine, the_engine_may_be_destroyed_inside_any_event) {
  for (const auto& hook : every_event) {
    auto mine = std::make_unique<Engine>(loop);
    Owner watcher;
    hook(watcher, [&] { mine.reset(); });
    watcher.connection = mine->connect(options(), watcher);
    RawPeer peer = server.accept();
    peer.upgrade(frame(0x81, "a") + frame(0x01, "frag") + frame(0x80, "ment") + frame(0x81, "b") +
                 frame(0x88, close_payload(1000)));
    EXPECT_TRUE(run_until(loop, [&] { return mine == nullptr; }));
    run_for(loop, 5ms);
    EXPECT_FALSE(watcher.connection->send("x", false)) << "an inert handle";
    watcher.connection->close(1000, "");
    watcher.connection->pause();
    watcher.connection->resume();
  }
}

TEST_F(WsEngine, the_engine_may_be_destroyed_with_connections_in_every_state) {
  RawPeer idle = open();
  Owner opening;
  opening.connection = engine->connect(options(), opening);
  RawPeer silent = server.accept();
  Owner fresh;
  fresh.connection = engine->connect(options(), fresh);
  engine.reset();
  run_for(loop, 10ms);
  EXPECT_FALSE(owner.is_closed()) << "no further events";
  EXPECT_FALSE(opening.is_closed());
  EXPECT_FALSE(fresh.is_closed());
  EXPECT_TRUE(idle.receive_end());
  EXPECT_TRUE(silent.receive_end());
}

TEST_F(WsEngine, one_connection_may_destroy_another_inside_its_event) {
  RawPeer first = open();
  Owner other;
  other.connection = engine->connect(options(), other);
  RawPeer second = server.accept();
  second.upgrade();
  ASSERT_TRUE(run_until(loop, [&] { return other.opened.has_value(); }));
  owner.when_message = [&] { other.connection.reset(); };
  ASSERT_TRUE(second.send(frame(0x81, "x")));
  ASSERT_TRUE(first.send(frame(0x81, "a") + frame(0x81, "b")));
  ASSERT_TRUE(wait_messages(2));
  EXPECT_TRUE(second.receive_end());
}

}  // namespace
}  // namespace holdfast::ws
