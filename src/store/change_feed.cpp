#include "store/change_feed.hpp"

#include <utility>

namespace holdfast::store {

ChangeFeed::~ChangeFeed() {
  loop_.cancel(timer_);
}

void ChangeFeed::listen(std::function<void()> listener) {
  listener_ = std::move(listener);
  has_listener_.store(listener_ != nullptr, std::memory_order_relaxed);
}

void ChangeFeed::touch() {
  if (!has_listener() || posted_.exchange(true)) return;
  loop_.post([weak = weak_from_this()] {
    if (const auto feed = weak.lock()) feed->touched();
  });
}

void ChangeFeed::touched() {
  posted_ = false;
  if (timer_ != 0) return;
  const Instant now = loop_.instant();
  const Instant due = told_ == Instant::min() ? now : told_ + quiet;
  if (due <= now) return tell();
  timer_ = loop_.call_at(due, [this] {
    timer_ = 0;
    tell();
  });
}

void ChangeFeed::tell() {
  told_ = loop_.instant();
  const auto listener = listener_;  // it may replace itself
  if (listener) listener();
}

}  // namespace holdfast::store
