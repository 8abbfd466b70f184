#include "coord/engine.hpp"

#include <exception>
#include <mutex>
#include <optional>

#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/http_client.hpp"
#include "runtime/shortage.hpp"
#include "runtime/signals.hpp"
#include "runtime/thread.hpp"
#include "store/open.hpp"

namespace holdfast::coord {

namespace {

constexpr Duration closing_limit = std::chrono::seconds(5);

Error error_of(const std::exception& thrown) {
  return runtime::shortage(thrown).value_or(Error(Code::internal, thrown.what()));
}

}  // namespace

/// The thread, and what lives on it.
class Engine::Body {
 public:
  Result<void> start(const std::string& store, First first, Duration patience, Inhabit inhabit);
  void stop();
  bool post(Task task);
  [[nodiscard]] bool is_current() const { return thread_.is_current(); }
  [[nodiscard]] std::optional<Error> failure();

 private:
  using Ready = std::promise<Result<void>>;
  void live(const std::string& url, First first, Duration patience, const Inhabit& inhabit, Ready ready);
  void ask_first(First first, Duration patience, std::function<void(Result<void>)> done);
  void close(runtime::AsioLoop& loop);

  // On the thread.
  bool is_over_ = false;  // who lived there is gone: what is still posted is dropped
  std::unique_ptr<Store> store_;
  std::shared_ptr<void> inhabitant_;

  std::mutex mutex_;                   // guards from here ...
  runtime::AsioLoop* loop_ = nullptr;  // while it can be posted to
  std::optional<Error> failure_;       // why the loop ended by itself
  // ... to here
  std::mutex joining_;
  runtime::Thread thread_;  // the last one: it uses what is above
};

Result<void> Engine::Body::start(const std::string& store, First first, Duration patience, Inhabit inhabit) {
  Ready ready;
  auto is_ready = ready.get_future();
  // Shared, since a thread's body can be copied.
  auto handed = std::make_shared<Ready>(std::move(ready));
  try {
    thread_ = runtime::Thread("coordinator", [this, store, first, patience, inhabit = std::move(inhabit), handed] {
      live(store, first, patience, inhabit, std::move(*handed));
    });
  } catch (const std::exception& thrown) {
    return tl::unexpected(error_of(thrown));
  }
  return is_ready.get();
}

void Engine::Body::live(const std::string& url, First first, Duration patience, const Inhabit& inhabit, Ready ready) {
  std::optional<runtime::AsioLoop> loop;
  bool is_told = false;
  const auto tell = [&](const Result<void>& how) {
    if (!std::exchange(is_told, true)) ready.set_value(how);
  };
  const auto open = [&](Result<void> asked) {
    if (asked) {
      asked = inhabit(*store_, *loop).map([this](std::shared_ptr<void> made) { inhabitant_ = std::move(made); });
    }
    tell(asked);
    if (!asked) loop->stop();
  };
  try {
    loop.emplace(runtime::random_seed());
    auto store = store::open_store(url, *loop, [&loop] { return std::make_unique<runtime::HttpClient>(*loop); });
    if (!store) return tell(tl::unexpected(store.error()));
    store_ = *std::move(store);
    {
      const std::lock_guard lock(mutex_);
      loop_ = &*loop;
    }
    loop->post([this, &url, first, patience, &open] {
      ask_first(store::is_remote(url) ? First::nothing : first, patience, open);
    });
    loop->run();
  } catch (const std::exception& thrown) {
    tell(tl::unexpected(error_of(thrown)));
    const std::lock_guard lock(mutex_);
    failure_ = error_of(thrown);
  }
  {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }
  is_over_ = true;
  inhabitant_.reset();
  if (store_) close(*loop);
}

void Engine::Body::ask_first(First first, Duration patience, std::function<void(Result<void>)> done) {
  const Instant deadline = loop_->instant() + patience;
  const auto judge = [done = std::move(done)](const auto& reply) {
    done(reply.outcome == Outcome::rejected ? tl::unexpected(reply.error) : Result<void>());
  };
  switch (first) {
    case First::make_table:
      return store_->initialize(deadline, judge);
    case First::look: {
      QueryDue query;
      query.state = state::task;
      query.limit = 1;
      query.purpose = Purpose::look;
      return store_->query_due(std::move(query), deadline, judge);
    }
    case First::nothing:
      return judge(Reply<std::string>{.outcome = Outcome::applied});
  }
}

void Engine::Body::close(runtime::AsioLoop& loop) {
  try {
    loop.call_after(closing_limit, [&loop] { loop.stop(); });
    store_->close([&loop] { loop.stop(); });
    loop.run();
  } catch (const std::exception& thrown) {
    const std::lock_guard lock(mutex_);
    failure_ = error_of(thrown);
  }
  store_.reset();
}

bool Engine::Body::post(Task task) {
  const std::lock_guard lock(mutex_);
  if (loop_ == nullptr) return false;
  loop_->post([this, task = std::move(task)] {
    if (!is_over_) task();
  });
  return true;
}

void Engine::Body::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (loop_ != nullptr) loop_->stop();
  }
  const std::lock_guard lock(joining_);
  thread_.join();
}

std::optional<Error> Engine::Body::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Engine::Engine() : body_(std::make_unique<Body>()) {}
Engine::~Engine() {
  body_->stop();
}

Result<std::shared_ptr<Engine>> Engine::start(const std::string& store, First first, Duration patience,
                                              Inhabit inhabit) {
  runtime::ignore_broken_pipes();
  std::shared_ptr<Engine> engine(new Engine);
  if (auto started = engine->body_->start(store, first, patience, std::move(inhabit)); !started) {
    return tl::unexpected(started.error());
  }
  return engine;
}

void Engine::stop() {
  body_->stop();
}
bool Engine::post(Task task) {
  return body_->post(std::move(task));
}
bool Engine::is_current() const {
  return body_->is_current();
}

Failure Engine::called_from_within() {
  return {Failure::Kind::rejected,
          Error(Code::usage,
                "A coordinator was called on its own thread, which would wait for itself: callbacks hand "
                "on to another thread what they have to do.")};
}

Failure Engine::has_ended() {
  const auto why = body_->failure();
  return {Failure::Kind::unknown, Error(Code::internal,
                                        "The coordinator has ended, and it is not known what became of "
                                        "this" +
                                            (why ? ": " + why->detail : std::string(".")))};
}

}  // namespace holdfast::coord
