#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "runtime/asio_loop.hpp"
#include "support/raw_server.hpp"
#include "support/ws_owner.hpp"
#include "ws/engine.hpp"

namespace holdfast::ws {

using test::Owner;
using test::RawPeer;
using test::RawServer;
using test::run_for;
using test::run_until;
using Kind = Closed::Kind;

/// A frame as a server sends it; `first` is the byte with FIN and opcode.
inline std::string frame(unsigned first, const std::string& payload) {
  std::string bytes(1, static_cast<char>(first));
  if (payload.size() <= 125) {
    bytes += static_cast<char>(payload.size());
  } else {
    const bool longer = payload.size() > 0xFFFF;
    bytes += static_cast<char>(longer ? 127 : 126);
    for (int i = longer ? 7 : 1; i >= 0; --i) bytes += static_cast<char>(payload.size() >> (8 * i) & 0xFFU);
  }
  return bytes + payload;
}
inline std::string close_payload(unsigned code, const std::string& reason = "") {
  return std::string{static_cast<char>(code >> 8U), static_cast<char>(code & 0xFFU)} + reason;
}

class WsEngineTest : public testing::Test {
 protected:
  ConnectOptions options(const std::string& target = "/") const {
    ConnectOptions result;
    result.url = server.url(target);
    return result;
  }
  void connect(ConnectOptions with) { owner.connection = engine->connect(std::move(with), owner); }
  /// An open connection, and the server's end of it.
  RawPeer open(ConnectOptions with) {
    connect(std::move(with));
    RawPeer peer = server.accept();
    peer.upgrade();
    EXPECT_TRUE(run_until(loop, [&] { return owner.opened.has_value(); }));
    return peer;
  }
  RawPeer open() { return open(options()); }
  const Closed& wait_closed() {
    EXPECT_TRUE(run_until(loop, [&] { return owner.is_closed(); })) << "never told that it ended";
    static const Closed none;
    return owner.closed.empty() ? none : owner.closed.front();
  }
  bool wait_messages(std::size_t count) {
    return run_until(loop, [&] { return owner.messages.size() >= count || owner.is_closed(); }) &&
           owner.messages.size() >= count;
  }
  bool wait_gone() {
    return run_until(loop, [&] { return engine->connections() == 0; });
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  runtime::AsioLoop loop{1};
  RawServer server{loop};
  std::unique_ptr<Engine> engine = std::make_unique<Engine>(loop);
  Owner owner;
};

}  // namespace holdfast::ws
