// Upstreams that misbehave: written in Python here, since they must break the rules.
#include <gmock/gmock.h>

#include "support/fleet_processes.hpp"
#include "support/sanitized.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

// Prints its port, then one line for each connection that it takes.
constexpr const char* upstream = R"py(
import base64, hashlib, socket, sys, threading

manner = sys.argv[1]
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)

def serve(peer):
    if manner == "mute":
        threading.Event().wait()
    request = b""
    while b"\r\n\r\n" not in request:
        got = peer.recv(4096)
        if not got:
            return
        request += got
    if manner == "busy":
        peer.sendall(b"HTTP/1.1 503 Busy\r\nRetry-After: 3600\r\nContent-Length: 4\r\n\r\nbusy")
        peer.close()
        return
    key = [l.split(b":")[1].strip() for l in request.split(b"\r\n") if l.lower().startswith(b"sec-websocket-key")][0]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
                 + accept + b"\r\n\r\n")
    if manner == "refuse":
        peer.sendall(b"\x88\x02" + (1008).to_bytes(2, "big"))
    if manner == "huge":
        try:
            peer.sendall(b"\x82\x7f" + (1 << 30).to_bytes(8, "big"))
            block = bytes(1 << 20)
            for _ in range(1 << 10):
                peer.sendall(block)
        except OSError:
            pass
    try:
        while peer.recv(4096):
            pass
    except OSError:
        pass
    peer.close()

while True:
    peer, _ = listener.accept()
    print("connection", flush=True)
    threading.Thread(target=serve, args=(peer,), daemon=True).start()
)py";

class WorkerUpstreams : public Processes {
 protected:
  runtime::Child server;
  runtime::Child holder;

  /// A worker that holds the connection `x` to an upstream of such a manner, which has taken it.
  void hold(const std::string& manner) {
    runtime::SpawnOptions options;
    options.arguments = {"/usr/bin/python3", "-c", upstream, manner};
    options.output = runtime::SpawnOptions::Output::pipe;
    options.dies_with_parent = true;
    auto child = runtime::spawn(options);
    ASSERT_TRUE(child) << child.error().detail;
    server = *std::move(child);
    const auto port = server.read_line(generous);
    ASSERT_TRUE(port);
    add("x", "ws://127.0.0.1:" + *port + "/");
    holder = worker("holder");
    ASSERT_EQ(server.read_line(generous).value_or(""), "connection");
  }
  void expect_clean_end() {
    holder.kill(SIGTERM);
    EXPECT_EQ(holder.wait(generous), (runtime::Exit{0, 0}));
    EXPECT_EQ(report("holder").at("end").as_string(), "drained");
    EXPECT_EQ(report("holder").at("leases").at("releases").as_int64(), 1);
  }
};

TEST_F(WorkerUpstreams, one_that_never_answers_does_not_hold_up_the_end) {
  hold("mute");
  ASSERT_TRUE(wait_until([&] { return text("x", "status") == "connecting"; }));
  expect_clean_end();
}

TEST_F(WorkerUpstreams, f37_one_that_is_busy_is_left_alone_as_long_as_it_asks) {
  hold("busy");
  ASSERT_TRUE(wait_until([&] { return text("x", "status") == "backing_off"; }));
  EXPECT_FALSE(server.read_line(3s)) << "Retry-After said an hour";
  expect_clean_end();
}

TEST_F(WorkerUpstreams, f38_one_that_refuses_for_good_is_parked_with_its_reason_and_kept) {
  hold("refuse");
  ASSERT_TRUE(wait_until([&] { return text("x", "status") == "parked"; }));
  EXPECT_THAT(text("x", "status_reason"), testing::HasSubstr("1008"));
  EXPECT_THAT(program.run({"conn", "ls"}).out, testing::HasSubstr("1008")) << "for a person too";
  EXPECT_FALSE(server.read_line(3s)) << "not tried again";
  expect_clean_end();
}

TEST_F(WorkerUpstreams, f44_a_message_of_a_gigabyte_is_refused_at_the_limit_and_costs_no_memory) {
  hold("huge");
  ASSERT_TRUE(wait_until([&] { return text("x", "status") == "parked"; }));
  EXPECT_THAT(text("x", "status_reason"), testing::HasSubstr("1009"));
  std::ifstream status("/proc/" + std::to_string(holder.pid()) + "/status");
  std::int64_t peak_kib = 0;
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") status >> peak_kib;
  }
  EXPECT_GT(peak_kib, 0);
#if !HOLDFAST_SANITIZED
  EXPECT_LT(peak_kib, 200 * 1024);
#endif
  expect_clean_end();
}

}  // namespace
}  // namespace holdfast::test
