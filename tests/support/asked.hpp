#pragma once
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/http_server.hpp"

namespace holdfast::test {

/// A request without a connection: the test looks at what is answered.
class Asked {
 public:
  explicit Asked(runtime::HttpIncoming request) : state_(std::make_shared<State>()) {
    state_->request = std::move(request);
  }

  [[nodiscard]] std::shared_ptr<runtime::HttpExchange> exchange() const { return std::make_shared<Exchange>(state_); }
  [[nodiscard]] bool is_answered() const { return state_->answer.has_value(); }
  [[nodiscard]] bool was_dropped() const { return state_->dropped; }
  [[nodiscard]] int status() const { return state_->answer ? state_->answer->status : 0; }
  [[nodiscard]] const runtime::HttpAnswer& answer() const { return *state_->answer; }
  [[nodiscard]] boost::json::object json() const {
    return state_->answer ? boost::json::parse(state_->answer->body).as_object() : boost::json::object();
  }
  [[nodiscard]] std::string text(const char* member) const {
    const auto object = json();
    const auto* value = object.if_contains(member);
    return value != nullptr && value->is_string() ? std::string(value->get_string().c_str()) : "";
  }
  void hang_up() {
    if (const auto called = std::exchange(state_->hung_up, {})) called();
  }
  /// Whether the answer reaches the system.
  void set_sent(bool is) { state_->is_sent = is; }

 private:
  struct State {
    runtime::HttpIncoming request;
    std::optional<runtime::HttpAnswer> answer;
    std::function<void()> hung_up;
    bool is_sent = true;
    bool dropped = false;
    int answers = 0;
  };
  class Exchange final : public runtime::HttpExchange {
   public:
    explicit Exchange(std::shared_ptr<State> state) : state_(std::move(state)) {}
    ~Exchange() override { state_->dropped = !state_->answer; }
    [[nodiscard]] const runtime::HttpIncoming& request() const override { return state_->request; }
    void answer(runtime::HttpAnswer answer, std::function<void(bool)> written) override {
      if (!state_->answer) state_->answer = std::move(answer);
      ++state_->answers;
      if (written) written(state_->is_sent);
    }
    void on_hang_up(std::function<void()> called) override { state_->hung_up = std::move(called); }

   private:
    std::shared_ptr<State> state_;
  };
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::test
