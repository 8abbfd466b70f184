#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ws/connection.hpp"

namespace holdfast::test {

/// Owns a connection and writes down what it hears; hooks run inside the event.
class Owner final : public ws::Events {
 public:
  std::unique_ptr<ws::Connection> connection;
  std::optional<ws::Opened> opened;
  std::vector<std::string> messages;
  int batches = 0;
  std::vector<ws::Closed> closed;  ///< never more than one
  std::function<void()> when_open;
  std::function<void()> when_before_read;
  std::function<void()> when_message;
  std::function<void()> when_batch_end;
  std::function<void()> when_closed;

  void on_open(const ws::Opened& opened_) override {
    opened = opened_;
    if (when_open) when_open();
  }
  void before_read() override {
    if (when_before_read) when_before_read();
  }
  void on_message(const ws::Message& message) override {
    messages.push_back((message.binary ? "b:" : "t:") + std::string(message.data));
    if (when_message) when_message();
  }
  void on_batch_end() override {
    ++batches;
    if (when_batch_end) when_batch_end();
  }
  void on_closed(const ws::Closed& closed_) override {
    closed.push_back(closed_);
    if (when_closed) when_closed();
  }
  [[nodiscard]] bool is_closed() const { return !closed.empty(); }
};

}  // namespace holdfast::test
