#include "worker/stream_loops.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/thread.hpp"
#include "worker/stream.hpp"
#include "ws/engine.hpp"

namespace holdfast::worker {
namespace {

constexpr int leftover_turns_max = 100'000;

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
  for (unsigned i = 0; i < threads; ++i) {
    One* one = ones_[i].get();
    one->thread = runtime::Thread("streams-" + std::to_string(i), [this, one] {
      try {
        one->loop.run();
      } catch (const std::exception& thrown) {
        failed_(std::string("a stream loop ended by an unexpected error: ") + thrown.what());
      } catch (...) {
        failed_("a stream loop ended by an unexpected error of no known kind");
      }
    });
  }
}

StreamLoops::~StreamLoops() {
  end();
}

std::vector<Loop*> StreamLoops::loops() const {
  std::vector<Loop*> result;
  for (const auto& one : ones_) result.push_back(&one->loop);
  return result;
}

ResourceFactory StreamLoops::carry(Sink& sink, TroubleListener troubled) {
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

void StreamLoops::end() {
  for (const auto& one : ones_) {
    if (one->thread.running()) one->loop.post([one = one.get()] { one->loop.stop(); });
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
