#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ws/connection.hpp"

namespace holdfast::test {

/// A network in which the test is the other side. It remembers every connection that was ever asked for; the
/// newest is the one that it talks on.
class FakeConnector final : public ws::Connector {
 public:
  struct Peer {
    ws::ConnectOptions options;
    ws::Events* events = nullptr;  // null: destroyed
    bool open = false;
    bool paused = false;
    bool refuses_to_send = false;
    std::vector<std::string> sent;
    std::uint16_t close_code = 0;  // 0: close() was not called
    std::string close_reason;
  };

  std::vector<std::shared_ptr<Peer>> peers;

  std::unique_ptr<ws::Connection> connect(ws::ConnectOptions options, ws::Events& events) override {
    peers.push_back(std::make_shared<Peer>());
    peers.back()->options = std::move(options);
    peers.back()->events = &events;
    return std::make_unique<Connection>(peers.back());
  }

  [[nodiscard]] std::size_t count() const { return peers.size(); }
  [[nodiscard]] Peer& peer() const { return *peers.back(); }
  [[nodiscard]] bool alive() const { return !peers.empty() && peer().events != nullptr; }

  void open() {
    peer().open = true;
    peer().events->on_open({});
  }
  void text(std::string_view data) {
    if (alive()) peer().events->on_message({false, data});
  }
  void binary(std::string_view data) {
    if (alive()) peer().events->on_message({true, data});
  }
  void batch_end() {
    if (alive()) peer().events->on_batch_end();
  }
  /// One read with one message.
  void receive(std::string_view data) {
    text(data);
    batch_end();
  }
  void receive_seq(std::int64_t seq) { receive("{\"seq\":" + std::to_string(seq) + "}"); }
  void closed(const ws::Closed& closed) {
    if (alive()) peer().events->on_closed(closed);
  }
  void close_frame(std::uint16_t code, std::string reason = {}) {
    ws::Closed end;
    end.kind = ws::Closed::Kind::closed;
    end.code = code;
    end.reason = std::move(reason);
    closed(end);
  }
  void fails(std::string what) {
    ws::Closed end;
    end.kind = ws::Closed::Kind::failed;
    end.error = Error(Code::unavailable, std::move(what));
    closed(end);
  }
  void refuses(int status, std::optional<Duration> retry_after = std::nullopt) {
    ws::Closed end;
    end.kind = ws::Closed::Kind::refused;
    end.http_status = status;
    end.retry_after = retry_after;
    closed(end);
  }
  /// The answer to a close() of ours.
  void closes_too() {
    ws::Closed end;
    end.kind = ws::Closed::Kind::local;
    end.code = peer().close_code;
    closed(end);
  }

 private:
  class Connection final : public ws::Connection {
   public:
    explicit Connection(std::shared_ptr<Peer> peer) : peer_(std::move(peer)) {}
    ~Connection() override { peer_->events = nullptr; }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    bool send(std::string_view payload, bool) override {
      if (!peer_->open || peer_->refuses_to_send) return false;
      peer_->sent.emplace_back(payload);
      return true;
    }
    void close(std::uint16_t code, std::string_view reason) override {
      peer_->close_code = code;
      peer_->close_reason = reason;
    }
    void pause() override { peer_->paused = true; }
    void resume() override { peer_->paused = false; }

   private:
    std::shared_ptr<Peer> peer_;
  };
};

}  // namespace holdfast::test
