#include "sim/post.hpp"

#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

}  // namespace

class SimPost::Box final : public worker::PokeNet {
 public:
  Box(SimPost& post, std::string place, std::shared_ptr<Address> address, std::function<void(std::string_view)> sent)
      : post_(post), place_(std::move(place)), address_(std::move(address)), sent_(std::move(sent)) {}
  ~Box() override { post_.addresses_.erase(place_); }
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;

  [[nodiscard]] std::string place() const override { return place_; }
  void receive(std::function<void(std::string_view)> receiver) override { address_->receiver = std::move(receiver); }
  void send(const std::string& place, const std::string& text) override {
    sent_(text);
    if (!address_->cut_off()) post_.send(place, text);
  }

 private:
  SimPost& post_;
  const std::string place_;
  const std::shared_ptr<Address> address_;
  const std::function<void(std::string_view)> sent_;
};

std::unique_ptr<worker::PokeNet> SimPost::open(std::int16_t process, Loop& own, std::function<bool()> cut_off,
                                               std::function<void(std::string_view)> sent) {
  std::string place = "p" + std::to_string(process) + ":7400";
  auto address = std::make_shared<Address>(Address{&own, std::move(cut_off), {}});
  addresses_[place] = address;
  return std::make_unique<Box>(*this, std::move(place), std::move(address), std::move(sent));
}

void SimPost::send(const std::string& place, const std::string& text) {
  Duration after = random_.between(world_.plan.latency / 2, world_.plan.latency * 2);
  if (world_.strikes(Fault::poke_lost, random_)) {
    switch (random_.below(4)) {
      case 0:
        world_.marks.hit(Mark::poke_lost);
        return;
      case 1:
        after = random_.between(after, world_.plan.terms.lease * 2);
        break;
      case 2:
        deliver(place, text, random_.between(after, world_.plan.terms.lease));
        break;
      default:
        deliver(place, "holdfast rows 00000000000000000000000000000000", after);
        break;
    }
  }
  deliver(place, text, after);
}

void SimPost::deliver(const std::string& place, const std::string& text, Duration after) {
  world_.loop.call_after(after, [this, place, text] {
    const auto found = addresses_.find(place);
    if (found == addresses_.end() || found->second->cut_off()) return;
    found->second->own->post([weak = std::weak_ptr(found->second), text] {
      const auto there = weak.lock();
      if (!there || !there->receiver) return;
      const auto receiver = there->receiver;  // it may put another in its place
      receiver(text);
    });
  });
}

}  // namespace holdfast::sim
