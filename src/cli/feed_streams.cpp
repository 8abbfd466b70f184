#include "cli/feed_streams.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "holdfast/assert.hpp"

namespace holdfast::cli {

using namespace std::chrono_literals;

FeedStreams::FeedStreams(const FeedOptions& options)
    : history_(options.history),
      size_(options.size),
      beats_per_second_(options.rate * static_cast<double>(options.streams)),
      beats_max_(options.messages == 0 ? UINT64_MAX : static_cast<std::uint64_t>(options.messages) * options.streams),
      streams_(options.streams) {
  HOLDFAST_ASSERT(options.streams > 0 && options.rate > 0, "the command refuses feeds that say nothing");
}

void FeedStreams::begin(Instant start) {
  HOLDFAST_ASSERT(!begun_, "a feed begins once");
  begun_ = true;
  start_ = start;
}

Instant FeedStreams::due_at(std::uint64_t beat) const {
  return start_ + std::chrono::duration_cast<Duration>(
                      std::chrono::duration<double>(static_cast<double>(beat - base_ + 1) / beats_per_second_));
}

std::optional<Instant> FeedStreams::next_due() const {
  if (!begun_ || beats_ >= beats_max_) return std::nullopt;
  return due_at(beats_);
}

void FeedStreams::advance(Now now, const std::function<void(std::size_t stream)>& said) {
  if (!begun_) return;
  if (beats_ < beats_max_ && now.instant - due_at(beats_) > 1s) {
    start_ = now.instant;
    base_ = beats_;
  }
  while (beats_ < beats_max_ && due_at(beats_) <= now.instant) {
    const auto index = static_cast<std::size_t>(beats_ % streams_.size());
    Stream& stream = streams_[index];
    ++beats_;
    ++stream.latest;
    stream.at_ms.push_back(now.wall.time_since_epoch().count());
    // The newest is always kept: it has to be sent.
    if (stream.at_ms.size() > std::max<std::size_t>(history_, 1)) stream.at_ms.pop_front();
    said(index);
  }
}

std::optional<std::size_t> FeedStreams::find(std::string_view name) const {
  if (name.size() < 2 || name[0] != 's' || (name[1] == '0' && name.size() > 2)) return std::nullopt;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), index);
  if (error != std::errc{} || end != name.data() + name.size() || index >= streams_.size()) return std::nullopt;
  return index;
}

std::int64_t FeedStreams::oldest(std::size_t stream) const {
  const Stream& found = streams_[stream];
  return found.latest - static_cast<std::int64_t>(found.at_ms.size()) + 1;
}

std::string FeedStreams::render(std::size_t stream, std::int64_t seq) const {
  const Stream& found = streams_[stream];
  HOLDFAST_ASSERT(seq >= oldest(stream) && seq <= found.latest, "only what is kept can be sent");
  const std::int64_t at_ms = found.at_ms[static_cast<std::size_t>(seq - oldest(stream))];
  std::string text = R"({"stream":"s)" + std::to_string(stream) + R"(","seq":)" + std::to_string(seq) +
                     R"(,"at_ms":)" + std::to_string(at_ms) + R"(,"data":")";
  text.reserve(text.size() + size_ + 2);
  // Different from message to message, so that one cut short or mixed up with another shows.
  for (std::size_t i = 0; i < size_; ++i) text += static_cast<char>('a' + (static_cast<std::size_t>(seq) + i) % 26);
  text += R"("})";
  return text;
}

std::optional<FeedRequest> parse_feed_target(std::string_view target, bool& bad_since) {
  bad_since = false;
  constexpr std::string_view prefix = "/stream/";
  if (!target.starts_with(prefix)) return std::nullopt;
  target.remove_prefix(prefix.size());
  const std::size_t question = target.find('?');
  FeedRequest request;
  request.stream = std::string(target.substr(0, question));
  std::string_view query = question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (!pair.starts_with("since=")) continue;
    const std::string_view text = pair.substr(6);
    std::int64_t seq = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seq);
    bad_since = error != std::errc{} || end != text.data() + text.size() || seq < 0;
    request.since = seq;
  }
  return request;
}

}  // namespace holdfast::cli
