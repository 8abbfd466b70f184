#include <gtest/gtest.h>

#include "ws/url.hpp"

namespace holdfast::ws {
namespace {

Url parsed(std::string_view text) {
  const auto url = parse_url(text);
  EXPECT_TRUE(url) << text << ": " << (url ? "" : url.error().detail);
  return url.value_or(Url{});
}

std::string refused(std::string_view text) {
  const auto url = parse_url(text);
  EXPECT_FALSE(url) << text;
  if (url) return "";
  EXPECT_EQ(url.error().code, Code::usage);
  return url.error().detail;
}

TEST(WsUrl, a_plain_url_has_port_80_and_a_secure_one_443) {
  EXPECT_EQ(parsed("ws://feed.example/a?b=c"), (Url{false, "feed.example", 80, "/a?b=c"}));
  EXPECT_EQ(parsed("wss://feed.example"), (Url{true, "feed.example", 443, "/"}));
  EXPECT_EQ(parsed("WSS://Feed.Example:8443/X"), (Url{true, "feed.example", 8443, "/X"}));
}

TEST(WsUrl, a_query_without_a_path_gets_the_root_path) {
  EXPECT_EQ(parsed("ws://h?q=1").target, "/?q=1");
  EXPECT_EQ(parsed("ws://h:?q=1").port, 80);
}

TEST(WsUrl, an_ipv6_address_stands_in_brackets_and_comes_without_them) {
  const Url url = parsed("ws://[::1]:9000/");
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.authority(), "[::1]:9000");
  EXPECT_EQ(parsed("wss://[2001:DB8::1]").authority(), "[2001:db8::1]");
}

TEST(WsUrl, text_and_url_are_the_same_thing) {
  for (const char* text : {"ws://h/", "wss://h:80/a/b?c=d&e=%20", "ws://[::1]:81/", "ws://127.0.0.1:8080/x"}) {
    EXPECT_EQ(parsed(text).to_string(), text);
    EXPECT_EQ(parsed(parsed(text).to_string()), parsed(text));
  }
}

TEST(WsUrl, the_default_port_is_left_out_of_the_host_header) {
  EXPECT_EQ(parsed("ws://h:80/").authority(), "h");
  EXPECT_EQ(parsed("wss://h:80/").authority(), "h:80");
  EXPECT_EQ(parsed("wss://h:443/").authority(), "h");
}

TEST(WsUrl, what_is_wrong_is_said) {
  EXPECT_NE(refused("http://h/").find("'http'"), std::string::npos);
  EXPECT_NE(refused("h/path").find("ws:// or wss://"), std::string::npos);
  EXPECT_NE(refused("ws:///path").find("no host"), std::string::npos);
  EXPECT_NE(refused("ws://user:secret@h/").find("user name"), std::string::npos);
  EXPECT_EQ(refused("ws://user:secret@h/").find("secret"), std::string::npos);
  EXPECT_NE(refused("ws://h/#top").find("fragment"), std::string::npos);
  EXPECT_NE(refused("ws://h:0/").find("port"), std::string::npos);
  EXPECT_NE(refused("ws://h:65536/").find("port"), std::string::npos);
  EXPECT_NE(refused("ws://h:8a/").find("port"), std::string::npos);
  EXPECT_NE(refused("ws://h:-1/").find("port"), std::string::npos);
  EXPECT_NE(refused("ws://::1/").find("brackets"), std::string::npos);
  EXPECT_NE(refused("ws://[::1/").find("]"), std::string::npos);
  EXPECT_NE(refused("ws://[::1]x/").find("]"), std::string::npos);
  EXPECT_NE(refused("ws://[nonsense]/").find("IPv6"), std::string::npos);
  EXPECT_NE(refused("ws://h/a b").find("space"), std::string::npos);
  EXPECT_NE(refused("ws://h/\r\nX: y").find("control"), std::string::npos);
  EXPECT_NE(refused(std::string_view("ws://h/\0", 8)).find("control"), std::string::npos);
  EXPECT_NE(refused("ws://b\xC3\xBC"
                    "cher.example/")
                .find("ASCII"),
            std::string::npos);
  EXPECT_NE(refused("ws://a%41/").find("'%'"), std::string::npos);
  EXPECT_NE(refused("ws://h/" + std::string(9000, 'x')).find("8 KiB"), std::string::npos);
  refused("");
  refused("ws://");
}

TEST(WsUrl, a_query_parameter_is_added_and_percent_encoded) {
  EXPECT_EQ(parsed("ws://h/s").with_query("since", "5").target, "/s?since=5");
  EXPECT_EQ(parsed("ws://h/s?a=b").with_query("since", "5").target, "/s?a=b&since=5");
  EXPECT_EQ(parsed("ws://h/s?").with_query("a b", "&=/\xC3\xA9").target, "/s?a%20b=%26%3D%2F%C3%A9");
}

}  // namespace
}  // namespace holdfast::ws
