// Opening a connection: upgrade, refusals, limits of every phase, the race of addresses.
#include <vector>

#include "support/ws_engine_test.hpp"

namespace holdfast::ws {
namespace {

using namespace std::chrono_literals;

using WsOpening = WsEngineTest;

// ---- opening

TEST_F(WsOpening, opens_with_the_subprotocol_that_the_server_chose) {
  ConnectOptions with = options("/feed?x=1");
  with.subprotocols = {"v1", "v2"};
  with.headers = {{"X-Token", "t"}};
  connect(with);
  EXPECT_FALSE(owner.connection->send("early", false)) << "not open yet";
  RawPeer peer = server.accept();
  const std::string request = peer.take_request();
  EXPECT_TRUE(
      request.starts_with("GET /feed?x=1 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port) + "\r\n"));
  EXPECT_TRUE(has(request, "X-Token: t\r\n"));
  ASSERT_TRUE(peer.send(RawPeer::answer_to(request, "Sec-WebSocket-Protocol: v2\r\n")));
  ASSERT_TRUE(run_until(loop, [&] { return owner.opened.has_value(); }));
  EXPECT_EQ(owner.opened->subprotocol, "v2");
}

TEST_F(WsOpening, every_connection_has_its_own_key) {
  connect(options());
  Owner other;
  other.connection = engine->connect(options(), other);
  RawPeer first = server.accept();
  RawPeer second = server.accept();
  EXPECT_NE(first.take_request(), second.take_request());
}

TEST_F(WsOpening, messages_right_behind_the_answer_are_delivered) {
  connect(options());
  RawPeer peer = server.accept();
  peer.upgrade(frame(0x81, "one") + frame(0x82, "two") + frame(0x01, "th"));
  ASSERT_TRUE(wait_messages(2));
  ASSERT_TRUE(peer.send(frame(0x80, "ree")));
  ASSERT_TRUE(wait_messages(3));
  EXPECT_EQ(owner.messages, (std::vector<std::string>{"t:one", "b:two", "t:three"}));
}

TEST_F(WsOpening, an_answer_that_comes_byte_by_byte_is_an_answer) {
  connect(options());
  RawPeer peer = server.accept();
  const std::string answer = RawPeer::answer_to(peer.take_request()) + frame(0x81, "hello");
  for (const char byte : answer) {
    ASSERT_TRUE(peer.send({&byte, 1}));
    loop.context().poll();
  }
  ASSERT_TRUE(wait_messages(1));
}

TEST_F(WsOpening, a_refused_connection_is_told_from_the_loop_with_the_address) {
  const std::uint16_t port = server.port;
  server.stop();
  connect(options());
  EXPECT_FALSE(owner.is_closed()) << "never inside connect()";
  const Closed& closed = wait_closed();
  EXPECT_EQ(closed.kind, Kind::failed);
  EXPECT_EQ(closed.error, Error(Code::unavailable, "connection refused by 127.0.0.1:" + std::to_string(port)));
  EXPECT_EQ(engine->connections(), 0U);
}

TEST_F(WsOpening, options_that_make_no_sense_are_told_as_usage) {
  ConnectOptions with = options();
  with.headers = {{"Host", "other"}};
  connect(with);
  EXPECT_EQ(wait_closed().error.code, Code::usage);
}

TEST_F(WsOpening, an_accept_that_belongs_to_another_key_is_refused) {
  connect(options());
  RawPeer peer = server.accept();
  peer.take_request();
  ASSERT_TRUE(peer.send(RawPeer::answer_to("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n")));
  const Closed& closed = wait_closed();
  EXPECT_EQ(closed.kind, Kind::failed);
  EXPECT_TRUE(has(closed.error.detail, "does not belong to our key")) << closed.error.detail;
  EXPECT_TRUE(peer.receive_end());
}

TEST_F(WsOpening, a_header_without_end_is_cut_off) {
  connect(options());
  RawPeer peer = server.accept();
  peer.take_request();
  (void)peer.send("HTTP/1.1 101 Switching Protocols\r\nX: " + std::string(20000, 'x'));
  EXPECT_TRUE(has(wait_closed().error.detail, "longer than 16384 bytes"));
}

TEST_F(WsOpening, the_stream_may_end_instead_of_an_answer) {
  connect(options());
  RawPeer peer = server.accept();
  peer.take_request();
  peer.close();
  EXPECT_TRUE(has(wait_closed().error.detail, "without an answer")) << owner.closed[0].error.detail;
}

TEST_F(WsOpening, f37_a_refused_upgrade_is_told_with_status_retry_after_and_body) {
  connect(options());
  RawPeer peer = server.accept();
  peer.take_request();
  ASSERT_TRUE(peer.send("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nfull"));
  const Closed& closed = wait_closed();
  EXPECT_EQ(closed.kind, Kind::refused);
  EXPECT_EQ(closed.http_status, 503);
  EXPECT_EQ(closed.retry_after, Duration(7s));
  EXPECT_EQ(closed.body, "full");
}

TEST_F(WsOpening, redirects_are_not_followed) {
  connect(options());
  RawPeer peer = server.accept();
  peer.take_request();
  ASSERT_TRUE(peer.send("HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(wait_closed().http_status, 302);
  EXPECT_TRUE(wait_gone());
}

TEST_F(WsOpening, f43_a_server_that_never_answers_the_upgrade_has_a_limit) {
  ConnectOptions with = options();
  with.limits.upgrade = 50ms;
  connect(with);
  RawPeer peer = server.accept();
  const Closed& closed = wait_closed();
  EXPECT_EQ(closed.kind, Kind::failed);
  EXPECT_TRUE(has(closed.error.detail, "no answer to the upgrade")) << closed.error.detail;
  EXPECT_TRUE(has(closed.error.detail, "50 ms"));
}

TEST_F(WsOpening, f43_a_refusal_whose_body_never_ends_is_told_at_the_limit) {
  ConnectOptions with = options();
  with.limits.upgrade = 100ms;
  connect(with);
  RawPeer peer = server.accept();
  peer.take_request();
  ASSERT_TRUE(peer.send("HTTP/1.1 429 Slow down\r\nRetry-After: 1\r\nContent-Length: 100\r\n\r\npart"));
  EXPECT_EQ(wait_closed().http_status, 429);
  EXPECT_EQ(owner.closed[0].body, "part");
}

TEST_F(WsOpening, f43_a_name_that_is_never_resolved_has_a_limit_and_a_late_answer_is_ignored) {
  ResolveDone late;
  EngineOptions with_resolver;
  with_resolver.resolve = [&](const std::string&, ResolveDone done) { late = std::move(done); };
  engine = std::make_unique<Engine>(loop, with_resolver);
  ConnectOptions with = options();
  with.url.host = "feed.example";
  with.limits.resolve = 30ms;
  connect(with);
  EXPECT_TRUE(has(wait_closed().error.detail, "feed.example")) << owner.closed[0].error.detail;
  late(std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(owner.closed.size(), 1U);
  EXPECT_EQ(engine->connections(), 0U);
}

TEST_F(WsOpening, closing_while_it_opens_ends_it) {
  connect(options());
  owner.connection->close(1000, "");
  EXPECT_FALSE(owner.is_closed()) << "never inside a call";
  EXPECT_EQ(wait_closed().kind, Kind::local);
  EXPECT_FALSE(owner.opened);
}

// ---- the race of addresses (RFC 8305)

TEST_F(WsOpening, a_refused_address_loses_to_the_next_at_once) {
  EngineOptions with_resolver;
  with_resolver.resolve = [](const std::string&, ResolveDone done) {
    done(std::vector<std::string>{"127.0.0.2", "127.0.0.3", "127.0.0.1"});
  };
  engine = std::make_unique<Engine>(loop, with_resolver);
  ConnectOptions with = options();
  with.url.host = "feed.example";
  RawPeer peer = open(with);
  EXPECT_TRUE(owner.opened);
}

TEST_F(WsOpening, ipv6_and_ipv4_take_turns_and_the_one_that_answers_wins) {
  // Nobody listens on ::1 at this port: refused, or no IPv6 at all.
  EngineOptions with_resolver;
  with_resolver.resolve = [](const std::string&, ResolveDone done) {
    done(std::vector<std::string>{"::1", "127.0.0.1"});
  };
  engine = std::make_unique<Engine>(loop, with_resolver);
  ConnectOptions with = options();
  with.url.host = "feed.example";
  RawPeer peer = open(with);
  EXPECT_TRUE(owner.opened);
}

TEST_F(WsOpening, connects_over_ipv6) {
  RawServer six(loop, "::1");
  if (!six.good()) GTEST_SKIP() << "this machine has no IPv6";
  ConnectOptions with;
  with.url = six.url();
  connect(with);
  RawPeer peer = six.accept();
  const std::string request = peer.take_request();
  EXPECT_TRUE(has(request, "Host: [::1]:" + std::to_string(six.port) + "\r\n"));
  ASSERT_TRUE(peer.send(RawPeer::answer_to(request)));
  EXPECT_TRUE(run_until(loop, [&] { return owner.opened.has_value(); }));
}

/// A listener whose queue is full: the system drops what else wants to connect, as a black hole does.
class BlackHole {
 public:
  BlackHole(runtime::AsioLoop& loop, const std::string& host, std::uint16_t port) : listener_(loop, host, port, 0) {
    for (int& filler : fillers_) {
      filler = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      inet_pton(AF_INET, host.c_str(), &address.sin_addr);
      ::connect(filler, reinterpret_cast<sockaddr*>(&address), sizeof address);
    }
  }
  ~BlackHole() {
    for (const int filler : fillers_) ::close(filler);
  }
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;
  [[nodiscard]] bool good() const { return listener_.good(); }

 private:
  RawServer listener_;
  int fillers_[4] = {-1, -1, -1, -1};
};

TEST_F(WsOpening, an_address_that_never_answers_loses_to_the_next_after_a_moment) {
  const BlackHole hole(loop, "127.0.0.2", server.port);
  ASSERT_TRUE(hole.good());
  EngineOptions with_resolver;
  with_resolver.resolve = [](const std::string&, ResolveDone done) {
    done(std::vector<std::string>{"127.0.0.2", "127.0.0.1"});
  };
  engine = std::make_unique<Engine>(loop, with_resolver);
  ConnectOptions with = options();
  with.url.host = "feed.example";
  with.limits.connect = 30s;
  RawPeer peer = open(with);
  EXPECT_TRUE(owner.opened) << "the black hole's own limit was never waited for";
}

TEST_F(WsOpening, f43_addresses_that_never_answer_have_a_limit_and_all_are_named) {
  const BlackHole hole(loop, "127.0.0.2", server.port);
  ASSERT_TRUE(hole.good());
  EngineOptions with_resolver;
  with_resolver.resolve = [](const std::string&, ResolveDone done) {
    done(std::vector<std::string>{"127.0.0.3", "127.0.0.2"});
  };
  engine = std::make_unique<Engine>(loop, with_resolver);
  ConnectOptions with = options();
  with.url.host = "feed.example";
  with.limits.connect = 50ms;
  connect(with);
  const std::string port = std::to_string(server.port);
  EXPECT_EQ(wait_closed().error.detail,
            "no address of feed.example can be reached: connection refused by 127.0.0.3:" + port +
                "; no answer from 127.0.0.2:" + port + " within 50 ms");
}

}  // namespace
}  // namespace holdfast::ws
