#include "worker/stream_loops.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/shortage.hpp"
#include "runtime/thread.hpp"
#include "worker/stream.hpp"
#include "ws/engine.hpp"

namespace holdfast::worker {
namespace {

constexpr int leftover_turns_max = 100'000;
constexpr Duration returning_limit = std::chrono::seconds(1);

}  // namespace

struct StreamLoops::One {
  runtime::AsioLoop loop{runtime::random_seed()};
  ws::Engine engine{loop};
  std::unique_ptr<StreamGroup> group;
  runtime::Thread thread;  // last: joined before the others go
};

StreamLoops::StreamLoops(unsigned threads, std::function<void(const std::string& what)> failed)
    : failed_(std::move(failed)) {
  for (unsigned i = 0; i < threads; ++i) ones_.push_back(std::make_unique<One>());
  try {
    for (unsigned i = 0; i < threads; ++i) run(*ones_[i], "streams-" + std::to_string(i));
  } catch (...) {
    end();  // those that run already would never be told to
    throw;
  }
}

void StreamLoops::run(One& one, const std::string& name) {
  one.thread = runtime::Thread(name, [this, &one] {
    try {
      one.loop.run();
    } catch (const std::exception& thrown) {
      const auto shortage = runtime::shortage(thrown);
      failed_(shortage ? shortage->detail
                       : std::string("a stream loop ended by an unexpected error: ") + thrown.what());
    } catch (...) {
      failed_("a stream loop ended by an unexpected error of no known kind");
    }
    returned_.push(0);
  });
}

StreamLoops::~StreamLoops() {
  end();
}

std::vector<Loop*> StreamLoops::loops() const {
  std::vector<Loop*> result;
  for (const auto& one : ones_) result.push_back(&one->loop);
  return result;
}

ResourceFactory StreamLoops::carry(Sink& sink, const TroubleListener& troubled) {
  std::vector<StreamGroup*> groups;
  for (const auto& one : ones_) {
    one->group = std::make_unique<StreamGroup>(one->loop, one->engine, sink, troubled);
    groups.push_back(one->group.get());
  }
  sink.on_progress([groups] {
    for (StreamGroup* group : groups) group->sink_progressed();
  });
  return [loops = loops(), groups](const Row&, Loop& loop) {
    const auto found = std::find(loops.begin(), loops.end(), &loop);
    return groups[static_cast<std::size_t>(found - loops.begin())]->make_stream();
  };
}

void StreamLoops::end(const std::function<void()>& late) {
  std::size_t awaited = 0;
  for (const auto& one : ones_) {
    if (!one->thread.running()) continue;
    ++awaited;
    one->loop.post([one = one.get()] { one->loop.stop(); });
  }
  std::vector<int> returned;
  while (returned.size() < awaited) {
    const std::size_t before = returned.size();
    (void)returned_.take(returned, awaited, returning_limit);
    if (returned.size() > before) continue;
    if (late) late();
    break;
  }
  for (const auto& one : ones_) {
    if (!one->thread.running()) continue;
    one->thread.join();
    // What was posted since it stopped is still owed: it destroys resources.
    one->loop.context().restart();
    for (int turns = 0; turns < leftover_turns_max; ++turns) {
      try {
        if (one->loop.context().poll_one() == 0) break;
      } catch (...) {  // the worker has ended already, and has said why
      }
    }
  }
}

}  // namespace holdfast::worker
