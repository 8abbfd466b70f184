// The engine against servers that do what no server should: see tests/peers/hostile_server.py for each path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "ws_client.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = ws::Closed::Kind;

/// A socket that listens and accepts nothing: the system completes handshakes until `backlog` is full.
class Listener {
 public:
  explicit Listener(int backlog) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(descriptor_, backlog) != 0 ||
        ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    address_ = address;
  }
  ~Listener() {
    ::close(descriptor_);
    for (const int filler : fillers_) ::close(filler);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] std::string url(const std::string& scheme) const {
    return scheme + "://127.0.0.1:" + std::to_string(ntohs(address_.sin_port)) + "/";
  }
  /// Until the system answers no further connection.
  void fill() {
    for (int i = 0; i < 4; ++i) {
      const int filler = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      (void)::connect(filler, reinterpret_cast<const sockaddr*>(&address_), sizeof address_);
      fillers_.push_back(filler);
    }
    ::usleep(50'000);
  }

 private:
  int descriptor_;
  sockaddr_in address_{};
  std::vector<int> fillers_;
};

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

struct Transport {
  bool tls;
};

class WsHostile : public testing::TestWithParam<Transport> {
 protected:
  static Peer::Options options() {
    Peer::Options result;
    result.tls = GetParam().tls;
    return result;
  }
  /// With limits that make a test short; where one of them is what ends the connection, it says so.
  ws::ConnectOptions hurried(const std::string& target) {
    ws::ConnectOptions result = Network::options_for(peer, target);
    result.limits.upgrade = 300ms;
    result.limits.close = 300ms;
    return result;
  }
  std::unique_ptr<Client> until_ended(ws::ConnectOptions options) {
    auto client = network.connect(std::move(options));
    EXPECT_TRUE(network.until_closed(*client)) << client->how_it_ended();
    EXPECT_EQ(client->times_closed, 1);
    if (!client->closed) client->closed.emplace();
    return client;
  }
  void expect_broken_off(const std::string& target, int code) {
    const auto client = until_ended(Network::options_for(peer, target));
    EXPECT_EQ(client->closed->kind, Kind::protocol) << client->how_it_ended();
    EXPECT_EQ(client->closed->code, code) << client->how_it_ended();
    EXPECT_FALSE(client->closed->error.detail.empty() && client->closed->reason.empty());
    EXPECT_EQ(peer.line(), "closed " + std::to_string(code)) << "as the server heard it";
  }
  Peer peer{"hostile_server.py", options()};
  Network network;
};

// ---- Before the connection is open: F43, every failure ends in a state with a deadline ----

TEST_P(WsHostile, f43_an_upgrade_that_is_never_answered_ends_at_its_limit) {
  const auto client = until_ended(hurried("/silent"));
  EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
  EXPECT_EQ(client->closed->error.code, Code::unavailable);
  EXPECT_EQ(client->times_opened, 0);
}

TEST_P(WsHostile, f43_an_answer_that_comes_byte_by_byte_ends_at_the_same_limit) {
  const auto client = until_ended(hurried("/slow_headers"));
  EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
  EXPECT_EQ(client->times_opened, 0);
}

TEST_P(WsHostile, f43_a_connection_that_ends_instead_of_an_answer_is_a_failure) {
  for (const char* path : {"/end_before_answer", "/reset_before_answer", "/end_in_answer"}) {
    SCOPED_TRACE(path);
    const auto client = until_ended(Network::options_for(peer, path));
    EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
    EXPECT_FALSE(client->closed->error.detail.empty());
    EXPECT_EQ(client->times_opened, 0);
  }
}

TEST_P(WsHostile, f37_a_503_is_told_with_its_retry_after_and_the_start_of_its_body) {
  const auto client = until_ended(Network::options_for(peer, "/status?code=503&retry=7&body=2000"));
  EXPECT_EQ(client->closed->kind, Kind::refused) << client->how_it_ended();
  EXPECT_EQ(client->closed->http_status, 503);
  EXPECT_EQ(client->closed->retry_after, Duration(7s));
  EXPECT_EQ(client->closed->body.size(), 512U);
  for (const char character : client->closed->body) EXPECT_GE(static_cast<unsigned char>(character), 0x20U);
}

TEST_P(WsHostile, f37_other_answers_than_101_are_told_by_their_status) {
  for (const int status : {200, 400, 401, 403, 404, 429, 500}) {
    const auto client = until_ended(Network::options_for(peer, "/status?code=" + std::to_string(status)));
    EXPECT_EQ(client->closed->kind, Kind::refused) << client->how_it_ended();
    EXPECT_EQ(client->closed->http_status, status);
    EXPECT_EQ(client->closed->retry_after, std::nullopt);
    EXPECT_EQ(client->times_opened, 0);
  }
}

TEST_P(WsHostile, f37_a_retry_after_that_makes_no_sense_is_none) {
  for (const char* value : {"soon", "-5", "1e9", "99999999999999999999999999"}) {
    SCOPED_TRACE(value);
    const auto client = until_ended(Network::options_for(peer, std::string("/status?code=429&retry=") + value));
    EXPECT_EQ(client->closed->http_status, 429) << client->how_it_ended();
    EXPECT_TRUE(!client->closed->retry_after || *client->closed->retry_after > Duration::zero());
  }
}

TEST_P(WsHostile, a_redirect_is_not_followed) {
  const std::string elsewhere = "/status?code=301&redirect=" + peer.url("/close_at_once?code=1000");
  const auto client = until_ended(Network::options_for(peer, elsewhere));
  EXPECT_EQ(client->closed->kind, Kind::refused) << client->how_it_ended();
  EXPECT_EQ(client->closed->http_status, 301);
}

TEST_P(WsHostile, a_refusal_whose_body_never_ends_is_still_told_as_what_it_is) {
  const auto client = until_ended(hurried("/status_without_length"));
  EXPECT_EQ(client->closed->kind, Kind::refused) << client->how_it_ended();
  EXPECT_EQ(client->closed->http_status, 503);
}

TEST_P(WsHostile, a_101_that_does_not_prove_that_it_read_our_key_is_no_upgrade) {
  for (const char* path : {"/wrong_accept", "/without?line=1", "/without?line=2", "/without?line=3", "/old_http",
                           "/extra?line=Sec-WebSocket-Protocol:%20unasked",
                           "/extra?line=Sec-WebSocket-Extensions:%20permessage-deflate"}) {
    SCOPED_TRACE(path);
    const auto client = until_ended(Network::options_for(peer, path));
    EXPECT_NE(client->closed->kind, Kind::closed) << client->how_it_ended();
    EXPECT_NE(client->closed->kind, Kind::local);
    EXPECT_FALSE(client->closed->error.detail.empty());
    EXPECT_THAT(client->closed->error.detail, Not(HasSubstr("limit"))) << "it is told at once";
    EXPECT_EQ(client->times_opened, 0);
  }
}

TEST_P(WsHostile, headers_without_end_are_cut_off_long_before_the_time_limit) {
  for (const char* path : {"/endless_headers", "/endless_header_line"}) {
    SCOPED_TRACE(path);
    const std::size_t before = resident_bytes();
    const auto client = until_ended(Network::options_for(peer, path));
    EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
    EXPECT_EQ(client->times_opened, 0);
    EXPECT_LT(resident_bytes(), before + 8 * mebibyte);
  }
}

TEST_P(WsHostile, an_answer_that_is_no_http_is_a_failure) {
  for (int seed = 0; seed < 10; ++seed) {
    const auto client = until_ended(hurried("/not_http?seed=" + std::to_string(seed)));
    EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
    EXPECT_EQ(client->times_opened, 0);
  }
}

// ---- Frames ----

TEST_P(WsHostile, f36_a_close_in_the_same_segment_as_the_upgrade_is_heard_after_the_opening) {
  const auto client = until_ended(Network::options_for(peer, "/close_at_once?code=1008"));
  EXPECT_EQ(client->times_opened, 1);
  EXPECT_EQ(client->closed->kind, Kind::closed) << client->how_it_ended();
  EXPECT_EQ(client->closed->code, 1008);
  EXPECT_EQ(client->closed->reason, "go away");
  EXPECT_EQ(peer.line(), "closed 1008") << "the close frame is answered with its code";
}

TEST_P(WsHostile, messages_in_the_same_segment_as_the_upgrade_are_heard) {
  const auto client = until_ended(Network::options_for(peer, "/glued"));
  EXPECT_THAT(client->texts(), ElementsAre("one", "two")) << client->how_it_ended();
  EXPECT_EQ(client->closed->code, 1000);
}

TEST_P(WsHostile, nothing_after_a_close_frame_is_heard) {
  const auto client = until_ended(Network::options_for(peer, "/after_close"));
  EXPECT_THAT(client->texts(), ElementsAre("before")) << client->how_it_ended();
  EXPECT_EQ(client->closed->code, 1000);
  const auto twice = until_ended(Network::options_for(peer, "/two_closes"));
  EXPECT_EQ(twice->closed->code, 1012) << twice->how_it_ended();
}

TEST_P(WsHostile, f44_a_message_of_one_gibibyte_is_refused_and_never_held) {
  for (const char* path : {"/announce_gib", "/announce_most", "/endless_fragments", "/many_small_fragments"}) {
    SCOPED_TRACE(path);
    const std::size_t before = resident_bytes();
    expect_broken_off(path, 1009);
    EXPECT_LT(resident_bytes(), before + 16 * mebibyte);
  }
}

TEST_P(WsHostile, each_way_to_break_the_frame_format_is_answered_with_its_code_after_the_good_message_before_it) {
  const auto list = until_ended(Network::options_for(peer, "/list_broken"));
  const std::vector<std::string> names = list->texts();
  ASSERT_GT(names.size(), 40U);
  ASSERT_EQ(peer.line(), "closed 1000");
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const int code = name.starts_with("bad_utf8") ? 1007 : 1002;
    const auto client = until_ended(Network::options_for(peer, "/broken?what=" + name));
    EXPECT_EQ(client->closed->kind, Kind::protocol) << client->how_it_ended();
    EXPECT_EQ(client->closed->code, code) << client->how_it_ended();
    EXPECT_THAT(client->texts(), ElementsAre("good"));
    EXPECT_EQ(peer.line(), "closed " + std::to_string(code)) << "as the server heard it";
  }
}

TEST_P(WsHostile, bad_utf8_in_a_first_fragment_is_refused_before_the_message_ends) {
  const auto client = until_ended(Network::options_for(peer, "/fail_fast_utf8"));
  EXPECT_EQ(client->closed->kind, Kind::protocol) << client->how_it_ended();
  EXPECT_EQ(client->closed->code, 1007);
  EXPECT_THAT(client->texts(), ElementsAre("good"));
}

TEST_P(WsHostile, garbage_after_the_upgrade_ends_the_connection_whatever_it_is) {
  for (int seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto client = until_ended(hurried("/garbage?seed=" + std::to_string(seed)));
    EXPECT_NE(client->closed->kind, Kind::refused) << client->how_it_ended();
    EXPECT_NE(client->closed->kind, Kind::local);
  }
}

TEST_P(WsHostile, frames_that_come_byte_by_byte_are_heard_as_if_at_once) {
  const auto client = until_ended(Network::options_for(peer, "/drip"));
  EXPECT_THAT(client->texts(), ElementsAre("aé€😀" + std::string(130, 'x'))) << client->how_it_ended();
  EXPECT_EQ(client->closed->kind, Kind::closed);
  EXPECT_EQ(client->closed->code, 1000);
}

TEST_P(WsHostile, an_end_in_the_middle_of_a_message_is_a_failure_and_half_a_message_is_none) {
  for (const char* path : {"/reset_in_message", "/end_in_message"}) {
    SCOPED_TRACE(path);
    const auto client = until_ended(Network::options_for(peer, path));
    EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
    EXPECT_EQ(client->closed->code, 1006);
    EXPECT_THAT(client->texts(), ElementsAre("good"));
  }
}

TEST_P(WsHostile, a_server_that_will_say_no_more_has_ended) {
  const auto client = until_ended(Network::options_for(peer, "/half_close"));
  EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
  EXPECT_THAT(client->texts(), ElementsAre("good"));
}

TEST_P(WsHostile, a_close_frame_that_is_never_answered_ends_at_its_limit_and_nothing_more_is_heard) {
  const auto client = network.connect(hurried("/ignore_close"));
  network.until_heard(*client, 3);
  ASSERT_FALSE(client->closed) << client->how_it_ended();
  const std::size_t heard = client->messages.size();
  client->connection->close(1000, "enough");
  ASSERT_TRUE(network.until_closed(*client));
  EXPECT_EQ(client->closed->kind, Kind::local) << client->how_it_ended();
  EXPECT_EQ(client->messages.size(), heard);
}

// ---- Liveness ----

TEST_P(WsHostile, f33_a_server_that_answers_no_ping_is_dead_after_its_limit) {
  ws::ConnectOptions options = Network::options_for(peer, "/mute");
  options.limits.ping_every = 50ms;
  options.limits.dead_after = 300ms;
  const auto client = until_ended(std::move(options));
  EXPECT_EQ(client->times_opened, 1);
  EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
  EXPECT_EQ(client->closed->error.code, Code::unavailable);
}

TEST_P(WsHostile, f34_a_server_that_sends_nothing_but_pongs_is_alive) {
  ws::ConnectOptions options = Network::options_for(peer, "/pongs_only");
  options.limits.ping_every = 50ms;
  options.limits.dead_after = 1s;
  const auto client = network.connect(std::move(options));
  ASSERT_TRUE(network.until_open(*client)) << client->how_it_ended();
  run_for(network.loop, 2500ms);
  EXPECT_EQ(client->times_closed, 0) << client->how_it_ended();
}

TEST_P(WsHostile, pongs_that_nobody_asked_for_are_ignored) {
  const auto client = network.connect(Network::options_for(peer, "/unsolicited_pongs"));
  network.until_heard(*client, 1);
  EXPECT_THAT(client->texts(), ElementsAre("good")) << client->how_it_ended();
}

TEST_P(WsHostile, a_server_that_reads_nothing_makes_send_refuse_and_memory_stay_bounded) {
  const auto client = network.connect(Network::options_for(peer, "/deaf"));
  network.until_heard(*client, 1);
  ASSERT_FALSE(client->closed) << client->how_it_ended();
  const std::size_t before = resident_bytes();
  const std::string block(64 * 1024, 'x');
  const bool refused = run_until(network.loop, [&] { return !client->connection->send(block, false); });
  EXPECT_TRUE(refused);
  EXPECT_LT(resident_bytes(), before + 16 * mebibyte);
  EXPECT_FALSE(client->closed) << client->how_it_ended();
}

TEST_P(WsHostile, pings_whose_pongs_are_never_read_make_no_memory_grow) {
  const std::size_t before = resident_bytes();
  const auto client = network.connect(Network::options_for(peer, "/ping_flood?mib=64"));
  network.until_heard(*client, 1);
  // Either it is put up with or it is ended: memory is what counts.
  if (!client->closed) {
    EXPECT_THAT(client->texts(), ElementsAre("enough"));
  }
  EXPECT_LT(resident_bytes(), before + 16 * mebibyte);
}

TEST_P(WsHostile, one_hostile_server_does_not_hold_up_another_connection) {
  const auto flooded = network.connect(Network::options_for(peer, "/ping_flood?mib=64"));
  const auto dripped = network.connect(Network::options_for(peer, "/drip"));
  ASSERT_TRUE(network.until_closed(*dripped));
  EXPECT_EQ(dripped->closed->code, 1000) << dripped->how_it_ended();
}

INSTANTIATE_TEST_SUITE_P(, WsHostile, testing::Values(Transport{false}, Transport{true}),
                         [](const testing::TestParamInfo<Transport>& parameter) {
                           return parameter.param.tls ? "tls" : "plain";
                         });

// ---- Below the frames ----

TEST(WsHostileNetwork, f43_a_connection_that_the_system_never_completes_ends_at_its_limit) {
  Listener listener(0);
  listener.fill();
  Network network;
  ws::ConnectOptions options = Network::options_for(listener.url("ws"));
  options.limits.connect = 200ms;
  const auto client = network.connect(std::move(options));
  ASSERT_TRUE(network.until_closed(*client));
  EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
  EXPECT_EQ(client->closed->error.code, Code::unavailable);
}

TEST(WsHostileNetwork, f43_a_tls_handshake_that_is_never_answered_ends_at_its_limit) {
  const Listener listener(16);
  Network network;
  ws::ConnectOptions options = Network::options_for(listener.url("wss"));
  options.limits.tls = 200ms;
  const auto client = network.connect(std::move(options));
  ASSERT_TRUE(network.until_closed(*client));
  EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
  EXPECT_EQ(client->closed->error.code, Code::unavailable);
  EXPECT_THAT(client->closed->error.detail, HasSubstr("TLS"));
}

TEST(WsHostileNetwork, a_port_where_nobody_listens_is_told_at_once) {
  std::string url;
  {
    const Listener listener(1);
    url = listener.url("ws");
  }
  Network network;
  const auto client = network.connect(Network::options_for(url));
  ASSERT_TRUE(network.until_closed(*client));
  EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
  EXPECT_THAT(client->closed->error.detail, HasSubstr("refused"));
}

TEST(WsHostileNetwork, a_server_that_speaks_no_tls_where_tls_was_asked_for_is_a_failure) {
  const Peer peer("hostile_server.py");
  Network network;
  ws::ConnectOptions options = Network::options_for("wss://127.0.0.1:" + std::to_string(peer.port()) + "/glued");
  options.limits.tls = 2s;
  const auto client = network.connect(std::move(options));
  ASSERT_TRUE(network.until_closed(*client));
  EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
  EXPECT_EQ(client->times_opened, 0);
}

// ---- Certificates: F40, always verified, the right way ----

class WsCertificate : public testing::Test {
 protected:
  /// How a connection to a server with such names in its certificate ends or opens.
  std::unique_ptr<Client> connect(const std::string& names, const std::string& host, bool trusted = true,
                                  int days = 2) {
    Peer::Options options;
    options.tls = true;
    options.names = names;
    options.days = days;
    peer.emplace("hostile_server.py", options);
    ws::ConnectOptions connect_options = Network::options_for(peer->url("/glued", host));
    if (trusted) connect_options.ca_file = peer->ca_file();
    auto client = network.connect(std::move(connect_options));
    EXPECT_TRUE(network.until_closed(*client));
    return client;
  }
  static void expect_refused(const Client& client) {
    EXPECT_EQ(client.times_opened, 0);
    ASSERT_TRUE(client.closed);
    EXPECT_EQ(client.closed->kind, Kind::failed) << client.how_it_ended();
    EXPECT_THAT(client.closed->error.detail, HasSubstr("certificate"));
  }
  std::optional<Peer> peer;
  Network network;
};

TEST_F(WsCertificate, f40_a_dns_name_that_the_certificate_has_is_accepted) {
  EXPECT_EQ(connect("DNS:localhost", "localhost")->times_opened, 1);
}

TEST_F(WsCertificate, f40_an_address_that_the_certificate_has_as_an_address_is_accepted) {
  EXPECT_EQ(connect("IP:127.0.0.1", "127.0.0.1")->times_opened, 1);
}

TEST_F(WsCertificate, f40_an_address_that_the_certificate_has_as_a_dns_name_is_refused) {
  expect_refused(*connect("DNS:127.0.0.1", "127.0.0.1"));
}

TEST_F(WsCertificate, f40_another_name_is_refused) {
  expect_refused(*connect("DNS:elsewhere.example", "localhost"));
}

TEST_F(WsCertificate, f40_another_address_is_refused) {
  expect_refused(*connect("IP:127.0.0.2", "127.0.0.1"));
}

TEST_F(WsCertificate, f40_an_authority_that_we_do_not_trust_is_refused) {
  expect_refused(*connect("DNS:localhost", "localhost", false));
}

TEST_F(WsCertificate, f40_an_expired_certificate_is_refused) {
  expect_refused(*connect("DNS:localhost", "localhost", true, -1));
}

}  // namespace
}  // namespace holdfast::test
