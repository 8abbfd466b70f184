// The engine against servers that others wrote: see tests/peers/README.md for what each path does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <utility>

#include "ws_client.hpp"

namespace holdfast::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Kind = ws::Closed::Kind;

struct Server {
  const char* program;
  bool tls;
};

std::string repeated(const std::string& unit, std::size_t times) {
  std::string result;
  result.reserve(unit.size() * times);
  for (std::size_t i = 0; i < times; ++i) result += unit;
  return result;
}
const std::string text_unit = "aé€😀";
const std::string binary_unit = "\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff";

class WsPeers : public testing::TestWithParam<Server> {
 protected:
  static Peer::Options options() {
    Peer::Options result;
    result.tls = GetParam().tls;
    return result;
  }
  Peer peer{GetParam().program, options()};
  Network network;
};

TEST_P(WsPeers, text_and_binary_messages_of_every_kind_of_length_come_back_as_they_were_sent) {
  const auto client = network.connect(peer, "/echo");
  ASSERT_TRUE(network.until_open(*client)) << client->how_it_ended();
  std::vector<Client::Heard> sent;
  for (const std::size_t size : {0U, 1U, 125U, 126U, 127U, 65535U, 65536U, 200000U}) {
    sent.push_back({repeated(text_unit, size / 10) + std::string(size % 10, '.'), false});
    sent.push_back({repeated(binary_unit, size / 10) + std::string(size % 10, '\0'), true});
  }
  for (const Client::Heard& message : sent) ASSERT_TRUE(client->connection->send(message.data, message.binary));
  network.until_heard(*client, sent.size());
  EXPECT_TRUE(client->messages == sent) << client->messages.size() << " of " << sent.size() << ", "
                                        << client->how_it_ended();
}

TEST_P(WsPeers, a_text_cut_inside_its_characters_arrives_whole) {
  const auto client = network.connect(peer, "/fragments?units=1000&step=7");
  network.until_heard(*client, 1);
  EXPECT_THAT(client->messages, ElementsAre(Client::Heard{repeated(text_unit, 1000), false}))
      << client->how_it_ended();
}

TEST_P(WsPeers, a_binary_message_in_fragments_arrives_whole) {
  const auto client = network.connect(peer, "/fragments?units=1000&step=999&binary=1");
  network.until_heard(*client, 1);
  EXPECT_THAT(client->messages, ElementsAre(Client::Heard{repeated(binary_unit, 1000), true}))
      << client->how_it_ended();
}

TEST_P(WsPeers, pings_between_the_fragments_of_a_message_are_answered_up_to_the_last_in_their_order) {
  const auto client = network.connect(peer, "/pings?units=100&step=7");
  network.until_heard(*client, 2);
  EXPECT_THAT(client->texts(), ElementsAre(repeated(text_unit, 100), "all answered")) << client->how_it_ended();
}

TEST_P(WsPeers, many_small_messages_arrive_once_each_and_in_order) {
  constexpr std::size_t count = 20000;
  constexpr std::size_t size = 100;
  const auto client = network.connect(peer, "/many?count=20000&size=100");
  std::size_t next = 0;
  bool as_sent = true;
  client->instead_of_keeping = [&](const ws::Message& message) {
    std::string expected = std::to_string(next++) + ' ';
    expected.resize(size, 'x');
    as_sent = as_sent && message.data == expected && !message.binary;
  };
  ASSERT_TRUE(network.until_closed(*client));
  EXPECT_EQ(next, count);
  EXPECT_TRUE(as_sent);
  EXPECT_EQ(client->closed->kind, Kind::closed) << client->how_it_ended();
  EXPECT_EQ(client->closed->code, 1000);
}

TEST_P(WsPeers, connections_that_share_an_engine_keep_their_messages_apart) {
  struct Stream {
    std::unique_ptr<Client> client;
    std::size_t next = 0;
    bool as_sent = true;
  };
  std::vector<Stream> streams(20);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    Stream& stream = streams[i];
    const std::size_t size = 20 + 100 * i;
    stream.client = network.connect(peer, "/many?count=500&size=" + std::to_string(size));
    stream.client->instead_of_keeping = [&stream, size](const ws::Message& message) {
      std::string expected = std::to_string(stream.next++) + ' ';
      expected.resize(size, 'x');
      stream.as_sent = stream.as_sent && message.data == expected;
    };
  }
  for (const Stream& stream : streams) {
    ASSERT_TRUE(network.until_closed(*stream.client));
    EXPECT_EQ(stream.next, 500U) << stream.client->how_it_ended();
    EXPECT_TRUE(stream.as_sent);
    EXPECT_EQ(stream.client->closed->code, 1000);
  }
}

TEST_P(WsPeers, a_message_of_just_under_the_limit_arrives) {
  const auto client = network.connect(peer, "/large?units=104857");
  network.until_heard(*client, 1);
  ASSERT_THAT(client->messages, SizeIs(1)) << client->how_it_ended();
  EXPECT_TRUE(client->messages[0].data == repeated(text_unit, 104857));
}

TEST_P(WsPeers, a_message_above_the_limit_ends_the_connection_with_1009_and_is_not_delivered) {
  const auto client = network.connect(peer, "/large?units=104858&binary=1");
  ASSERT_TRUE(network.until_closed(*client));
  EXPECT_EQ(client->closed->kind, Kind::protocol) << client->how_it_ended();
  EXPECT_EQ(client->closed->code, 1009);
  EXPECT_THAT(client->messages, SizeIs(0));
}

TEST_P(WsPeers, f44_fragments_that_are_small_each_but_too_much_together_end_the_connection_with_1009) {
  const auto client = network.connect(peer, "/fragments?units=200000&step=65536");
  ASSERT_TRUE(network.until_closed(*client));
  EXPECT_EQ(client->closed->kind, Kind::protocol) << client->how_it_ended();
  EXPECT_EQ(client->closed->code, 1009);
  EXPECT_THAT(client->messages, SizeIs(0));
}

TEST_P(WsPeers, the_subprotocol_that_the_server_chose_is_told) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"v1.example", "v2.example"}, "v2.example"},
      {{"v1.example"}, "v1.example"},
      {{"unknown.example"}, ""},
      {{}, ""},
  };
  for (const auto& [offered, chosen] : cases) {
    ws::ConnectOptions options = Network::options_for(peer, "/echo");
    options.subprotocols = offered;
    const auto client = network.connect(std::move(options));
    ASSERT_TRUE(network.until_open(*client)) << client->how_it_ended();
    EXPECT_EQ(client->opened->subprotocol, chosen);
  }
}

TEST_P(WsPeers, the_request_carries_host_and_extra_headers_and_asks_for_no_extension) {
  ws::ConnectOptions options = Network::options_for(peer, "/headers");
  options.headers = {{"Authorization", "Bearer abc=="}, {"X-Feed", "trades and quotes"}};
  const auto client = network.connect(std::move(options));
  network.until_heard(*client, 1);
  ASSERT_THAT(client->messages, SizeIs(1)) << client->how_it_ended();
  const boost::json::value parsed = boost::json::parse(client->messages[0].data);
  const boost::json::object& headers = parsed.as_object();
  EXPECT_EQ(headers.at("host").as_string(), "127.0.0.1:" + std::to_string(peer.port()));
  EXPECT_EQ(headers.at("authorization").as_string(), "Bearer abc==");
  EXPECT_EQ(headers.at("x-feed").as_string(), "trades and quotes");
  EXPECT_FALSE(headers.contains("sec-websocket-extensions"));
}

TEST_P(WsPeers, every_close_code_is_told_with_its_reason_after_the_messages_before_it) {
  for (const int code : {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 4999}) {
    SCOPED_TRACE(code);
    const auto client =
        network.connect(peer, "/close?count=3&reason=because%20%E2%82%AC%F0%9F%98%80&code=" + std::to_string(code));
    ASSERT_TRUE(network.until_closed(*client));
    EXPECT_EQ(client->closed->kind, Kind::closed) << client->how_it_ended();
    EXPECT_EQ(client->closed->code, code);
    EXPECT_EQ(client->closed->reason, "because €😀");
    EXPECT_THAT(client->texts(), ElementsAre("0", "1", "2"));
    EXPECT_EQ(client->times_closed, 1);
  }
}

TEST_P(WsPeers, an_end_without_a_close_frame_is_a_failure_after_the_messages_before_it) {
  const auto client = network.connect(peer, "/abrupt?count=3");
  ASSERT_TRUE(network.until_closed(*client));
  EXPECT_EQ(client->closed->kind, Kind::failed) << client->how_it_ended();
  EXPECT_EQ(client->closed->code, 1006);
  EXPECT_FALSE(client->closed->error.detail.empty());
  EXPECT_THAT(client->texts(), ElementsAre("0", "1", "2"));
}

TEST_P(WsPeers, the_server_hears_our_code_and_reason_and_we_hear_that_it_has_ended) {
  for (const int code : {1000, 1001, 3000, 4999}) {
    SCOPED_TRACE(code);
    const auto client = network.connect(peer, "/report");
    ASSERT_TRUE(network.until_open(*client)) << client->how_it_ended();
    client->connection->close(static_cast<std::uint16_t>(code), "moving €");
    ASSERT_TRUE(network.until_closed(*client));
    EXPECT_EQ(client->closed->kind, Kind::local) << client->how_it_ended();
    EXPECT_EQ(client->times_closed, 1);
    EXPECT_EQ(peer.line(), "closed " + std::to_string(code) + " moving €");
  }
}

TEST_P(WsPeers, a_destroyed_connection_ends_at_the_server_and_tells_nothing_more) {
  const auto client = network.connect(peer, "/report");
  ASSERT_TRUE(network.until_open(*client)) << client->how_it_ended();
  client->connection.reset();
  EXPECT_EQ(peer.line().substr(0, 11), "closed 1006");
  run_for(network.loop, std::chrono::milliseconds(20));
  EXPECT_EQ(client->times_closed, 0);
}

TEST_P(WsPeers, f39_a_paused_connection_takes_nothing_while_another_goes_on_and_loses_nothing) {
  constexpr std::size_t count = 50000;
  const auto paused = network.connect(peer, "/many?count=50000&size=200");
  std::size_t next = 0;
  bool in_order = true;
  paused->instead_of_keeping = [&](const ws::Message& message) {
    in_order = in_order && message.data.starts_with(std::to_string(next) + ' ');
    if (next++ == 100) paused->connection->pause();
  };
  ASSERT_TRUE(run_until(network.loop, [&] { return next > 100; })) << paused->how_it_ended();
  const auto other = network.connect(peer, "/many?count=1000&size=200");
  const std::size_t taken = next;
  ASSERT_TRUE(network.until_closed(*other));
  EXPECT_THAT(other->messages, SizeIs(1000)) << other->how_it_ended();
  EXPECT_EQ(next, taken);
  EXPECT_LT(next, count);

  paused->connection->resume();
  ASSERT_TRUE(network.until_closed(*paused));
  EXPECT_EQ(next, count) << paused->how_it_ended();
  EXPECT_TRUE(in_order);
}

TEST(WsPeersByAddress, ipv6_works_plain_and_with_a_certificate_for_the_address) {
  if (!std::ifstream("/proc/net/if_inet6").good()) GTEST_SKIP() << "this machine has no IPv6";
  for (const bool tls : {false, true}) {
    Peer::Options options;
    options.host = "::1";
    options.tls = tls;
    options.names = "IP:::1";
    const Peer peer("node_server.mjs", options);
    Network network;
    const auto client = network.connect(peer, "/headers");
    network.until_heard(*client, 1);
    ASSERT_THAT(client->messages, SizeIs(1)) << client->how_it_ended();
    EXPECT_THAT(client->messages[0].data, HasSubstr("[::1]:" + std::to_string(peer.port())));
  }
}

TEST(WsPeersByAddress, a_name_with_several_addresses_reaches_the_one_where_somebody_listens) {
  const Peer peer("node_server.mjs");  // on 127.0.0.1 alone; localhost may be ::1 first
  Network network;
  const auto client = network.connect(Network::options_for(peer.url("/echo", "localhost")));
  EXPECT_TRUE(network.until_open(*client)) << client->how_it_ended();
}

INSTANTIATE_TEST_SUITE_P(, WsPeers,
                         testing::Values(Server{"node_server.mjs", false}, Server{"node_server.mjs", true},
                                         Server{"websockets_server.py", false}, Server{"websockets_server.py", true},
                                         Server{"autobahn_server.py", false}, Server{"autobahn_server.py", true}),
                         [](const testing::TestParamInfo<Server>& parameter) {
                           const std::string program = parameter.param.program;
                           return program.substr(0, program.find("_server")) +
                                  (parameter.param.tls ? "_tls" : "_plain");
                         });

}  // namespace
}  // namespace holdfast::test
