#include "store/change_feed.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::store {

namespace {

/// Stands for any number; a sum of millions of them fits into 64 bits.
constexpr std::uint64_t many = std::uint64_t{1} << 40U;

}  // namespace

ChangeFeed::~ChangeFeed() {
  loop_.cancel(timer_);
}

void ChangeFeed::listen(ChangeListener listener) {
  listener_ = std::move(listener);
  has_listener_.store(listener_ != nullptr, std::memory_order_relaxed);
}

void ChangeFeed::touch(std::size_t rows) {
  if (!has_listener()) return;
  rows_.fetch_add(std::min<std::uint64_t>(rows, many));
  if (posted_.exchange(true)) return;
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
  const std::uint64_t rows = rows_.exchange(0);
  if (listener) listener({rows < many ? static_cast<std::size_t>(rows) : Changed::any});
}

}  // namespace holdfast::store
