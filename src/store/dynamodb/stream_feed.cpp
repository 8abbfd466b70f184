#include "store/dynamodb/stream_feed.hpp"

#include <utility>

namespace holdfast::store::dynamodb {

StreamFeed::StreamFeed(ContextPtr context, std::unique_ptr<Caller> streams)
    : context_(std::move(context)),
      streams_(std::move(streams)),
      feed_(std::make_shared<ChangeFeed>(context_->loop)) {}

StreamFeed::~StreamFeed() {
  stop();
}

void StreamFeed::stop() {
  if (timer_ != 0) context_->loop.cancel(std::exchange(timer_, 0));
  reader_.reset();
}

void StreamFeed::listen(ChangeListener listener) {
  const bool ends = listener == nullptr;
  feed_->listen(std::move(listener));
  if (ends) return stop();
  if (reader_ || context_->closed) return;
  reader_ = std::make_shared<StreamReader>(context_->options, context_->loop.random());
  pump();
}

void StreamFeed::pump() {
  while (auto ask = reader_->poll(context_->loop.instant())) {
    // An answer that comes after its reader has gone is nobody's.
    auto handler = [this, id = ask->id, reader = std::weak_ptr(reader_)](const CallReply& reply) {
      if (!reader.expired()) answered(id, reply);
    };
    if (ask->of_table) {
      context_->call(std::move(ask->call), ask->deadline, std::move(handler));
    } else {
      streams_->call(std::move(ask->call), ask->deadline, std::move(handler));
    }
  }
  if (timer_ != 0) context_->loop.cancel(std::exchange(timer_, 0));
  const auto next = reader_->next();
  if (!next) return;
  timer_ = context_->loop.call_at(*next, [this] {
    timer_ = 0;
    pump();
  });
}

void StreamFeed::answered(std::uint64_t id, const CallReply& reply) {
  const std::size_t rows = reader_->answered(id, reply, context_->loop.instant());
  note_state();
  if (rows > 0) feed_->touch(rows);
  pump();
}

/// Who listens reads the capabilities anew when he is called.
void StreamFeed::note_state() {
  no_feed_ = reader_->no_feed();
  if (reader_->state() == StreamReader::State::unknown) return;
  const auto has = reader_->state() == StreamReader::State::on ? Server::Does::yes : Server::Does::no;
  if (std::exchange(context_->server.stream, has) != has) feed_->touch();
}

}  // namespace holdfast::store::dynamodb
