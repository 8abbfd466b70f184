#include "cli/store_session.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/output.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/environment.hpp"
#include "runtime/http_client.hpp"
#include "runtime/signals.hpp"

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration request_limit = 5s;
constexpr Duration making_limit = 10min;  // a server makes tables, and indexes of what is there, in minutes
constexpr Duration quiet_while_making = 3s;
constexpr std::size_t in_flight_max = 64;

/// Where a table keeps seconds, an expiry is read back later than it was written.
bool is_as_written(const Change& change, const Value& value, Duration expiry_step) {
  if (value == change.value) return true;
  const std::int64_t* wanted = change.value.as_int();
  const std::int64_t* found = value.as_int();
  if (change.attribute != attribute::expires_at || wanted == nullptr || found == nullptr) return false;
  const auto later = std::chrono::milliseconds(*found - *wanted);
  return later > Duration::zero() && later < expiry_step * 2 && expiry_step > std::chrono::milliseconds(1);
}

// Whether a row is as a write would have left it: then it does not matter whose write it was.
bool is_done(const Update& update, const std::optional<Row>& row, Duration expiry_step) {
  if (!row) return false;
  return std::all_of(update.changes.begin(), update.changes.end(), [&](const Change& change) {
    const Value* value = row->find(change.attribute);
    switch (change.kind) {
      case Change::Kind::set:
        return value != nullptr && is_as_written(change, *value, expiry_step);
      case Change::Kind::set_if_absent:
        return value != nullptr;
      case Change::Kind::remove:
        return value == nullptr;
      case Change::Kind::add:
        return false;
    }
    return false;
  });
}

/// Told by the store where it repeated the write by itself.
bool may_be_with_itself(const RowReply& reply) {
  return reply.outcome == Outcome::conflict && !reply.error.detail.empty();
}

}  // namespace

struct StoreSession::Impl {
  runtime::AsioLoop loop{runtime::random_seed()};
  std::unique_ptr<Store> store;
  Duration expiry_step{};  // of the table
  std::unique_ptr<runtime::Signals> signals;
  bool interrupted = false;
  bool waiting = false;
  Duration patience{};  // for all tries of one request together

  // Runs the loop until `start`'s handler was called.
  template <class T>
  T await(const std::function<void(Handler<T>)>& start) {
    std::optional<T> reply;
    start([&](T value) {
      reply = std::move(value);
      loop.stop();
    });
    while (!reply) loop.run();
    return std::move(*reply);
  }

  void pause(Duration duration) {
    bool over = false;
    loop.call_after(duration, [&] {
      over = true;
      loop.stop();
    });
    while (!over) loop.run();
  }

  // Asks again while the answer is one that can pass.
  template <class T>
  Result<Reply<T>> request(const std::function<void(Instant, Handler<Reply<T>>)>& send,
                           Duration limit = request_limit) {
    const Instant until = loop.instant() + patience;
    Duration delay = 20ms;
    for (;;) {
      const Instant deadline = loop.instant() + limit;
      auto reply = await<Reply<T>>([&](Handler<Reply<T>> handler) { send(deadline, std::move(handler)); });
      if (reply.outcome == Outcome::rejected) return tl::unexpected<Error>(reply.error);
      if (reply.ok() || reply.outcome == Outcome::conflict) return reply;
      if (loop.instant() + delay > until || interrupted) return tl::unexpected<Error>(reply.error);
      pause(loop.random().between(Duration::zero(), delay));  // full jitter (S10)
      delay = std::min<Duration>(delay * 2, 1s);
    }
  }
};

StoreSession::StoreSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StoreSession::~StoreSession() {
  bool closed = false;
  impl_->store->close([&] {
    closed = true;
    impl_->loop.stop();
  });
  while (!closed) impl_->loop.run();
}

Result<void> StoreSession::check(const std::string& url) {
  if (url.starts_with("memory:")) {
    return fail(Code::usage,
                "--store: a table in memory is gone when this command ends, and no other sees it: give " +
                    std::string("sqlite:PATH or dynamodb://TABLE?region=REGION"));
  }
  return store::check_store_url(url).map_error(
      [](const Error& error) { return Error(error.code, "--store: " + error.detail); });
}

Result<std::unique_ptr<StoreSession>> StoreSession::open(const std::string& url, Create create, Duration patience) {
  return open(url, create, {}, patience);
}

Result<std::unique_ptr<StoreSession>> StoreSession::make(const std::string& url, const store::Making& making) {
  if (!store::is_remote(url) && (making.billing || making.stream)) {
    return fail(Code::usage, "streams and billing are for a table of DynamoDB, and " + url + " is none");
  }
  return open(url, Create::always, making, usual_patience);
}

Result<std::unique_ptr<StoreSession>> StoreSession::open(const std::string& url, Create create,
                                                         const store::Making& making, Duration patience) {
  if (const auto checked = check(url); !checked) return tl::unexpected<Error>(checked.error());
  const bool creates = create == Create::always || (create == Create::if_embedded && store::may_create(url));
  if (!creates && create != Create::expected && !store::is_remote(url)) {
    // Looking must not leave an empty file behind.
    const std::string path = store::path_of(url);
    std::error_code ignored;
    if (!path.empty() && !std::filesystem::exists(path, ignored)) {
      if (!store::may_create(url)) {
        return fail(Code::unavailable, *store::absent_file(url) + " The store's URL says create=never");
      }
      return fail(Code::not_found, "there is no file " + path + ": make one with 'holdfast init --store " + url +
                                       "', or name another with --store");
    }
  }
  auto impl = std::make_unique<Impl>();
  impl->patience = patience;
  if (store::is_remote(url)) runtime::ignore_broken_pipes();  // its sockets; print() ends as they would have it
  const auto transport = [&impl] {
    return std::make_unique<runtime::HttpClient>(impl->loop, runtime::http_limits_for_aws());
  };
  auto store =
      store::open_store(create == Create::expected ? store::expecting(url) : url, impl->loop, transport, making);
  if (!store) return tl::unexpected<Error>(store.error());
  impl->store = std::move(*store);
  impl->expiry_step = store::expiry_step(url);
  std::unique_ptr<StoreSession> session(new StoreSession(std::move(impl)));
  if (!creates) return session;
  if (auto done = session->initialize(store::is_remote(url)); !done) return tl::unexpected<Error>(done.error());
  return session;
}

Result<void> StoreSession::initialize(bool is_remote) {
  // What is unreachable ends much sooner than the limit, since the client gives up after some tries.
  const TimerId progress = impl_->loop.call_after(quiet_while_making, [] {
    if (runtime::terminal(STDERR_FILENO).present) tell("the table is being made: this may take some minutes");
  });
  auto done = impl_->request<std::string>(
      [&](Instant deadline, Handler<Reply<std::string>> handler) {
        impl_->store->initialize(deadline, std::move(handler));
      },
      is_remote ? making_limit : std::min(request_limit, impl_->patience));
  impl_->loop.cancel(progress);
  if (!done) return tl::unexpected<Error>(done.error());
  created_ = done->value;
  return {};
}

std::string StoreSession::name() const {
  return impl_->store->capabilities().name;
}
WallTime StoreSession::wall() const {
  return impl_->loop.wall();
}
Instant StoreSession::instant() const {
  return impl_->loop.instant();
}

Result<std::optional<Row>> StoreSession::get(const std::string& key) {
  auto reply = impl_->request<std::optional<Row>>(
      [&](Instant deadline, Handler<RowReply> handler) { impl_->store->get(key, deadline, std::move(handler)); });
  if (!reply) return tl::unexpected<Error>(reply.error());
  return std::move(reply->value);
}

Result<std::vector<Row>> StoreSession::all(std::string_view state) {
  std::vector<Row> rows;
  QueryDue query{.state = std::string(state), .before = WallTime::max(), .limit = 500, .page = {}};
  do {
    auto reply = impl_->request<Page>([&](Instant deadline, Handler<PageReply> handler) {
      impl_->store->query_due(query, deadline, std::move(handler));
    });
    if (!reply) return tl::unexpected<Error>(reply.error());
    std::move(reply->value.rows.begin(), reply->value.rows.end(), std::back_inserter(rows));
    query.page = reply->value.next;
  } while (!query.page.empty());
  return rows;
}

Result<StoreSession::Written> StoreSession::update(const Update& update) {
  bool uncertain = false;
  auto reply = impl_->request<std::optional<Row>>([&](Instant deadline, Handler<RowReply> handler) {
    impl_->store->update(update, deadline, [&, handler = std::move(handler)](RowReply answer) {
      uncertain = uncertain || answer.outcome == Outcome::unknown || may_be_with_itself(answer);
      handler(std::move(answer));
    });
  });
  if (!reply) {
    Error error = reply.error();
    if (uncertain) error.detail += "; it may have been done all the same: look before you try again";
    return tl::unexpected<Error>(std::move(error));
  }
  // S5: a conflict after a try of unknown outcome may be with that try.
  const bool applied = reply->ok() || (uncertain && is_done(update, reply->value, impl_->expiry_step));
  return Written{applied, std::move(reply->value), !applied && uncertain};
}

Result<void> StoreSession::update_all(const std::vector<Update>& updates,
                                      const std::function<void(std::size_t index, const Written&)>& each) {
  std::size_t sent = 0;
  std::size_t done = 0;
  std::vector<std::size_t> again;  // what was throttled or is unknown: one by one, with patience
  std::optional<Error> error;
  std::function<void()> send_more = [&] {
    while (!error && sent < updates.size() && sent - done < in_flight_max) {
      const std::size_t index = sent++;
      impl_->store->update(updates[index], impl_->loop.instant() + request_limit, [&, index](RowReply reply) {
        ++done;
        if (reply.outcome == Outcome::rejected) error = reply.error;
        if (reply.ok() || reply.outcome == Outcome::conflict) {
          const bool with_itself = may_be_with_itself(reply);
          const bool applied =
              reply.ok() || (with_itself && is_done(updates[index], reply.value, impl_->expiry_step));
          each(index, {applied, std::move(reply.value), !applied && with_itself});
        } else {
          again.push_back(index);
        }
        send_more();
        if (done == sent) impl_->loop.stop();
      });
    }
  };
  send_more();
  while (done < sent) impl_->loop.run();
  for (const std::size_t index : again) {
    if (error) break;
    auto written = update(updates[index]);
    if (!written) {
      error = written.error();
      break;
    }
    written->applied = written->applied || is_done(updates[index], written->row, impl_->expiry_step);
    written->may_be_ours = !written->applied;
    each(index, *written);
  }
  if (error) return tl::unexpected<Error>(*error);
  return {};
}

store::Diagnosis StoreSession::diagnose(Instant deadline) {
  return impl_->await<store::Diagnosis>([&](Handler<store::Diagnosis> handler) {
    store::diagnosable(*impl_->store)->diagnose(deadline, std::move(handler));
  });
}

store::RaceResult StoreSession::race(Instant deadline) {
  store::Diagnosable& apart = *store::diagnosable(*impl_->store);
  const auto write = [&apart](Update update, Instant limit, Handler<RowReply> handler) {
    apart.update_apart(std::move(update), limit, std::move(handler));
  };
  const auto read = [this](std::string key, Instant limit, Handler<RowReply> handler) {
    impl_->store->get(std::move(key), limit, std::move(handler));
  };
  return impl_->await<store::RaceResult>([&](Handler<store::RaceResult> handler) {
    store::race({impl_->loop, write, read}, store::scratch_key(), deadline, std::move(handler));
  });
}

Reply<store::Walked> StoreSession::walk(const std::string& from, Instant deadline) {
  return impl_->await<Reply<store::Walked>>([&](Handler<Reply<store::Walked>> handler) {
    store::diagnosable(*impl_->store)->walk(from, deadline, std::move(handler));
  });
}

Store& StoreSession::store() {
  return *impl_->store;
}

runtime::AsioLoop& StoreSession::loop() {
  return impl_->loop;
}

void StoreSession::run_until(const std::function<bool()>& is_done) {
  while (!is_done()) impl_->loop.run();
}

void StoreSession::catch_signals() {
  impl_->signals = std::make_unique<runtime::Signals>(impl_->loop, [impl = impl_.get()](int) {
    impl->interrupted = true;
    if (impl->waiting) impl->loop.stop();
  });
}

bool StoreSession::interrupted() const {
  return impl_->interrupted;
}

bool StoreSession::wait(Duration duration) {
  const Instant until = impl_->loop.instant() + duration;
  const TimerId timer = impl_->loop.call_at(until, [this] { impl_->loop.stop(); });
  impl_->waiting = true;
  while (!impl_->interrupted && impl_->loop.instant() < until) impl_->loop.run();
  impl_->waiting = false;
  impl_->loop.cancel(timer);
  return !impl_->interrupted;
}

}  // namespace holdfast::cli
