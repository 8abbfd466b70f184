#include "runtime/datagrams.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/asio_loop.hpp"
#include "support/run_until.hpp"

namespace holdfast::runtime {
namespace {

TEST(SocketAddress, is_an_address_and_a_port) {
  const auto four = parse_socket_address("10.0.0.7:7400");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->address, "10.0.0.7");
  EXPECT_EQ(four->port, 7400);
  EXPECT_EQ(four->text(), "10.0.0.7:7400");
  const auto six = parse_socket_address("[fd00::7]:7400");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->address, "fd00::7");
  EXPECT_EQ(six->text(), "[fd00::7]:7400");
  EXPECT_TRUE(parse_socket_address("0.0.0.0:0")->is_any());
  EXPECT_TRUE(parse_socket_address("[::]:1")->is_any());
}

TEST(SocketAddress, that_is_none_is_refused_with_how_to_write_one) {
  for (const char* text : {"", ":1", "10.0.0.7", "10.0.0.7:", "10.0.0.7:x", "10.0.0.7:65536", "10.0.0.7:-1", "host:1",
                           "fd00::7:1", "[10.0.0.7]:1", "[fd00::7]", "10.0.0.7:1 ", "10.0.0.256:1"}) {
    const auto none = parse_socket_address(text);
    ASSERT_FALSE(none) << text;
    EXPECT_NE(none.error().detail.find("10.0.0.7:7400"), std::string::npos) << none.error().detail;
  }
}

struct DatagramsTest : testing::Test {
  [[nodiscard]] std::unique_ptr<Datagrams> open(const std::string& at = "127.0.0.1:0") {
    auto opened = Datagrams::open(loop, parse_socket_address(at).value());
    EXPECT_TRUE(opened) << opened.error().detail;
    return *std::move(opened);
  }
  AsioLoop loop{1};
  std::vector<std::string> heard;
};

TEST_F(DatagramsTest, go_from_one_to_another) {
  const auto one = open();
  const auto other = open();
  other->receive([&](std::string_view text) { heard.emplace_back(text); });
  one->send({"127.0.0.1", other->port()}, "a");
  one->send({"127.0.0.1", other->port()}, "b");
  EXPECT_TRUE(test::run_until(loop, [&] { return heard.size() == 2; }));
  EXPECT_EQ(heard, (std::vector<std::string>{"a", "b"}));
}

TEST_F(DatagramsTest, that_are_too_long_or_go_nowhere_are_lost_and_nothing_else) {
  const auto one = open();
  const auto other = open();
  other->receive([&](std::string_view text) { heard.emplace_back(text); });
  one->send({"127.0.0.1", 9}, "nobody listens there");
  one->send({"no address", 9}, "x");
  one->send({"127.0.0.1", other->port()}, std::string(Datagrams::bytes_max + 1, 'x'));
  one->send({"127.0.0.1", other->port()}, std::string(Datagrams::bytes_max, 'y'));
  EXPECT_TRUE(test::run_until(loop, [&] { return !heard.empty(); }));
  EXPECT_EQ(heard.front().size(), Datagrams::bytes_max);
}

TEST_F(DatagramsTest, a_receiver_may_end_itself) {
  const auto one = open();
  auto other = open();
  other->receive([&](std::string_view text) {
    heard.emplace_back(text);
    other->receive({});
  });
  one->send({"127.0.0.1", other->port()}, "a");
  one->send({"127.0.0.1", other->port()}, "b");
  EXPECT_TRUE(test::run_until(loop, [&] { return !heard.empty(); }));
  other.reset();
  EXPECT_EQ(heard.size(), 1U);
}

TEST_F(DatagramsTest, an_address_that_is_taken_or_not_ours_is_an_error) {
  const auto one = open();
  for (const SocketAddress& address : {SocketAddress{"127.0.0.1", one->port()}, SocketAddress{"192.0.2.1", 0}}) {
    const auto refused = Datagrams::open(loop, address);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().detail.find(address.text()), std::string::npos) << refused.error().detail;
  }
}

}  // namespace
}  // namespace holdfast::runtime
