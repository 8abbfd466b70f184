// A name server that says nothing must not hold up the loop (S7). This program's getaddrinfo stands before the C
// library's, for libcurl too; for one name it hangs until it is told.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "runtime/asio_loop.hpp"
#include "runtime/http_client.hpp"
#include "runtime/signals.hpp"
#include "support/eventually.hpp"
#include "support/run_until.hpp"

namespace {

constexpr std::string_view hanging_name = "name-server-says-nothing.invalid";
std::atomic<int> hanging = 0;
std::atomic<bool> released = false;

}  // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  using Resolve = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto resolve = reinterpret_cast<Resolve>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node == nullptr || node != hanging_name) return resolve(node, service, hints, result);
  ++hanging;
  (void)holdfast::test::eventually([] { return released.load(); }, std::chrono::minutes(1));
  --hanging;
  return EAI_AGAIN;
}

namespace holdfast::runtime {
namespace {

using namespace std::chrono_literals;

TEST(HttpResolver, that_hangs_holds_up_neither_the_deadline_nor_a_cancel_nor_the_end) {
  ignore_broken_pipes();
  AsioLoop loop{1};
  auto client = std::make_unique<HttpClient>(loop);
  HttpRequest request;
  request.url = "http://" + std::string(hanging_name) + "/";
  const auto cancelled = client->send(request, loop.instant() + 1h, [](const HttpReply&) {});
  std::optional<HttpReply> reply;
  client->send(request, loop.instant() + 200ms, [&](HttpReply came) { reply = std::move(came); });
  ASSERT_TRUE(test::run_until(loop, [&] { return hanging.load() > 0; }));
  ASSERT_TRUE(test::run_until(loop, [&] { return reply.has_value(); }));
  ASSERT_FALSE(*reply);
  EXPECT_EQ(reply->error().stage, HttpStage::not_sent);
  EXPECT_GT(hanging.load(), 0) << "it waited for the resolver";
  client->cancel(cancelled);
  EXPECT_GT(hanging.load(), 0) << "it waited for the resolver";
  client->send(request, loop.instant() + 1h, [](const HttpReply&) {});
  test::run_for(loop, 20ms);
  client.reset();
  EXPECT_GT(hanging.load(), 0) << "it waited for the resolver";
  released = true;
  EXPECT_TRUE(test::eventually([] { return hanging.load() == 0; }));
}

}  // namespace
}  // namespace holdfast::runtime
