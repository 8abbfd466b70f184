#include "store/dynamodb/surroundings.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <map>
#include <utility>

#include "holdfast/loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/environment.hpp"
#include "runtime/regular_file.hpp"
#include "runtime/spawn.hpp"
#include "runtime/thread.hpp"
#include "runtime/units.hpp"

namespace holdfast::store::dynamodb {
namespace {

constexpr std::size_t bytes_max = std::size_t{64} << 10U;

class ThisMachine final : public Surroundings {
 public:
  explicit ThisMachine(Loop& loop) : loop_(loop) {
    for (const std::string& name : runtime::environment_names("AWS_")) keep(name);
    keep("HOME");
  }
  ~ThisMachine() override {
    ending_ = true;
    jobs_.close();
    thread_.join();
  }
  ThisMachine(const ThisMachine&) = delete;
  ThisMachine& operator=(const ThisMachine&) = delete;

  std::optional<std::string> variable(const std::string& name) const override {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return std::nullopt;
    return found->second;
  }
  Result<std::string> read_file(const std::string& path) const override {
    if (path == "/dev/null") return std::string();  // how AWS's tools are told to read no file
    return runtime::read_regular_file(path, "the file", bytes_max);
  }
  Result<std::string> run(const std::vector<std::string>& command, Duration limit) override;
  void in_background(std::function<void()> work, std::function<void()> done) override;

 private:
  struct Job {
    std::function<void()> work, done;
  };
  void keep(const std::string& name) {
    if (auto value = runtime::environment(name)) variables_.emplace(name, *std::move(value));
  }
  void work();

  Loop& loop_;
  std::map<std::string, std::string> variables_;  // a copy: others may change the environment
  std::atomic<bool> ending_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // what was posted looks whether we are still there
  runtime::Mailbox<Job> jobs_;
  runtime::Thread thread_;
};

Result<std::string> ThisMachine::run(const std::vector<std::string>& command, Duration limit) {
  runtime::SpawnOptions options;
  options.arguments = command;
  options.output = runtime::SpawnOptions::Output::pipe;
  options.discard_errors = true;
  options.own_group = true;
  options.dies_with_parent = true;
  Result<runtime::Child> child = runtime::spawn(options);
  if (!child) return tl::unexpected(child.error());

  const std::string& name = command.front();
  const Instant deadline = runtime::boot_now() + limit;
  std::string output;
  std::optional<runtime::Exit> exit;
  while (!exit) {
    const std::string more = child->read_all(Duration::zero());
    output += more;
    if (output.size() > bytes_max) return fail(Code::corrupt, name + " printed more than 64 KiB");
    if (ending_) return fail(Code::unavailable, name + " was ended, since this process ends");
    if (runtime::boot_now() >= deadline)
      return fail(Code::unavailable, name + " did not end within " + runtime::describe_duration(limit) +
                                         " and was killed; it must not ask for input");
    if (more.empty()) exit = child->wait(std::chrono::milliseconds(20));
  }
  // What it left in the pipe. One that it left behind and that holds the pipe open is not waited for.
  for (std::string more = child->read_all(Duration::zero()); !more.empty();
       more = child->read_all(Duration::zero())) {
    output += more;
    if (output.size() > bytes_max) return fail(Code::corrupt, name + " printed more than 64 KiB");
  }
  if (exit->signal != 0)
    return fail(Code::unavailable, name + " was killed by signal " + std::to_string(exit->signal));
  if (exit->code != 0)
    return fail(Code::denied, name + " failed with exit code " + std::to_string(exit->code) +
                                  "; run it by hand to see what it says");
  return output;
}

void ThisMachine::in_background(std::function<void()> work, std::function<void()> done) {
  if (!thread_.running()) thread_ = runtime::Thread("credentials", [this] { this->work(); });
  jobs_.push(Job{std::move(work), std::move(done)});
}

void ThisMachine::work() {
  std::vector<Job> taken;
  while (jobs_.take(taken, 1, std::chrono::hours(1))) {
    for (Job& job : taken) {
      if (ending_) return;
      job.work();
      loop_.post([alive = std::weak_ptr<int>(alive_), done = std::move(job.done)] {
        if (!alive.expired()) done();
      });
    }
    taken.clear();
  }
}

}  // namespace

std::unique_ptr<Surroundings> this_machine(Loop& loop) {
  return std::make_unique<ThisMachine>(loop);
}

}  // namespace holdfast::store::dynamodb
