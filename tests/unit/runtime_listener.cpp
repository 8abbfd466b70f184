#include "runtime/listener.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/served.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::runtime {
namespace {

using test::HttpServerTest;
using test::RawClient;
using testing::HasSubstr;

ListenAddress unix_at(const std::string& path) {
  return parse_listen_address("unix:" + path).value();
}

TEST(ListenAddress, is_an_ip_address_with_a_port_or_a_file) {
  EXPECT_EQ(parse_listen_address("127.0.0.1:7420")->text(), "127.0.0.1:7420");
  EXPECT_EQ(parse_listen_address("[::1]:0")->text(), "[::1]:0");
  EXPECT_EQ(parse_listen_address("unix:/run/h.sock")->text(), "unix:/run/h.sock");
  for (const std::string bad : {"", "7420", "localhost:7420", "127.0.0.1", "unix:", "::1:7420"}) {
    const auto none = parse_listen_address(bad);
    ASSERT_FALSE(none) << bad;
    EXPECT_EQ(none.error().code, Code::usage);
  }
  EXPECT_FALSE(parse_listen_address("unix:/" + std::string(108, 'x')));
}

TEST(ListenAddress, is_local_where_no_other_machine_reaches_it) {
  for (const char* local : {"127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "unix:x"}) {
    EXPECT_TRUE(parse_listen_address(local)->is_local()) << local;
  }
  for (const char* open : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_FALSE(parse_listen_address(open)->is_local()) << open;
  }
}

TEST(Listener, tells_the_port_that_it_was_given) {
  const auto listener = Listener::open(parse_listen_address("127.0.0.1:0").value());
  ASSERT_TRUE(listener) << listener.error().detail;
  EXPECT_NE(listener->address().tcp.port, 0);
  const auto second = Listener::open(listener->address());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::unavailable);
  EXPECT_THAT(second.error().detail, HasSubstr("in use"));
}

TEST(Listener, of_a_file_may_be_used_by_its_owner_only_and_takes_it_away) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("s");
  {
    const auto listener = Listener::open(unix_at(path));
    ASSERT_TRUE(listener) << listener.error().detail;
    struct stat found {};
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Listener, replaces_a_file_that_was_left_behind_and_no_other) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("s");
  auto first = Listener::open(unix_at(path));
  ASSERT_TRUE(first);
  const auto refused = Listener::open(unix_at(path));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("another process"));
  ::close(first->take_descriptor());  // as if it had been killed: the file is still there
  const auto second = Listener::open(unix_at(path));
  ASSERT_TRUE(second) << second.error().detail;
  first->close();
  EXPECT_TRUE(std::filesystem::exists(path)) << "it is the second one's by now";
  std::ofstream(folder.file("text")) << "precious";
  const auto no_socket = Listener::open(unix_at(folder.file("text")));
  ASSERT_FALSE(no_socket);
  EXPECT_THAT(no_socket.error().detail, HasSubstr("is no socket"));
  EXPECT_TRUE(std::filesystem::exists(folder.file("text")));
  EXPECT_FALSE(Listener::open(unix_at(folder.file("none/s"))));
}

TEST(Listener, does_not_race_with_one_that_is_just_starting) {
  const test::TemporaryFolder folder;
  const int lock = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  const auto refused = Listener::open(unix_at(folder.file("s")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable);
  ::close(lock);
  EXPECT_TRUE(Listener::open(unix_at(folder.file("s"))));
}

TEST_F(HttpServerTest, serves_on_a_unix_socket_and_on_ipv6_too) {
  const test::TemporaryFolder folder;
  open({}, "unix:" + folder.file("s"));
  {
    RawClient client = connect();
    client.send("GET /unix HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(client.receives("GET /unix []"));
  }
  bool done = false;
  server->drain(std::chrono::hours(1), [&] { done = true; });
  EXPECT_TRUE(test::run_until(loop, [&] { return done; }));
  EXPECT_FALSE(std::filesystem::exists(folder.file("s")));
  open({}, "[::1]:0");
  RawClient client = connect();
  client.send("GET /six HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(client.receives("GET /six []"));
}

}  // namespace
}  // namespace holdfast::runtime
