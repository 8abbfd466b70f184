#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/loop.hpp"
#include "worker/poke.hpp"

namespace holdfast::test {

/// Datagrams between workers in one thread: they arrive at once, or not at all.
class PokePost {
 public:
  std::vector<std::string> sent;  ///< places, in order
  bool loses = false;

  [[nodiscard]] std::unique_ptr<worker::PokeNet> open(std::string place, Loop& loop) {
    auto box = std::make_unique<Box>(*this, std::move(place), loop);
    boxes_[box->place()] = box.get();
    return box;
  }
  void send(const std::string& place, const std::string& text) {
    sent.push_back(place);
    const auto found = boxes_.find(place);
    if (loses || found == boxes_.end()) return;
    found->second->arrive(text);
  }
  [[nodiscard]] std::size_t sent_to(const std::string& place) const {
    return static_cast<std::size_t>(std::count(sent.begin(), sent.end(), place));
  }

 private:
  class Box final : public worker::PokeNet {
   public:
    Box(PokePost& post, std::string place, Loop& loop) : post_(post), place_(std::move(place)), loop_(loop) {}
    ~Box() override { post_.boxes_.erase(place_); }
    [[nodiscard]] std::string place() const override { return place_; }
    void receive(std::function<void(std::string_view)> receiver) override { *receiver_ = std::move(receiver); }
    void send(const std::string& place, const std::string& text) override { post_.send(place, text); }
    void arrive(const std::string& text) {
      loop_.post([receiver = receiver_, text] {
        if (const auto call = *receiver) call(text);
      });
    }

   private:
    PokePost& post_;
    const std::string place_;
    Loop& loop_;
    std::shared_ptr<std::function<void(std::string_view)>> receiver_ =
        std::make_shared<std::function<void(std::string_view)>>();
  };
  std::map<std::string, Box*> boxes_;
};

}  // namespace holdfast::test
