#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/asio_loop.hpp"
#include "runtime/http_server.hpp"
#include "runtime/signals.hpp"
#include "support/raw_client.hpp"
#include "support/run_until.hpp"

namespace holdfast::test {

/// A server whose requests the test answers: at once with what was asked, unless `holds`.
struct HttpServerTest : testing::Test {
  HttpServerTest() { runtime::ignore_broken_pipes(); }

  void open(runtime::HttpServerLimits limits = {}, const std::string& at = "127.0.0.1:0") {
    options.limits = limits;
    options.serve = [this](std::shared_ptr<runtime::HttpExchange> exchange) {
      seen.push_back(exchange->request());
      if (holds) return held.push_back(std::move(exchange));
      exchange->answer(echo(exchange->request()));
    };
    auto opened = runtime::HttpServer::open(loop, runtime::parse_listen_address(at).value(), options);
    ASSERT_TRUE(opened) << opened.error().detail;
    server = *std::move(opened);
  }
  static runtime::HttpAnswer echo(const runtime::HttpIncoming& request) {
    runtime::HttpAnswer answer;
    answer.status = 200;
    answer.body = request.method + " " + request.target + " [" + request.body + "]";
    return answer;
  }
  RawClient connect() { return {loop, server->address()}; }
  /// Sends it on a connection of its own and gives all that comes until the server closes.
  std::string say(const std::string& request) {
    RawClient client = connect();
    client.send(request);
    EXPECT_TRUE(client.is_ended()) << "what came: " << client.received;
    return client.received;
  }

  runtime::AsioLoop loop{1};
  runtime::HttpServerOptions options;
  std::vector<runtime::HttpIncoming> seen;
  std::vector<std::shared_ptr<runtime::HttpExchange>> held;
  bool holds = false;
  std::unique_ptr<runtime::HttpServer> server;
};

}  // namespace holdfast::test
