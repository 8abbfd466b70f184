#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/loop.hpp"
#include "store/dynamodb/surroundings.hpp"

namespace holdfast::test {

/// A machine that the test makes up. What runs in the background runs as tasks of the loop.
class FakeSurroundings final : public store::dynamodb::Surroundings {
 public:
  explicit FakeSurroundings(Loop& loop) : loop_(loop) {}

  [[nodiscard]] std::optional<std::string> variable(const std::string& name) const override {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] Result<std::string> read_file(const std::string& path) const override {
    ++reads;
    if (unreadable.contains(path)) return fail(Code::denied, "cannot read the file " + path + ": Permission denied");
    const auto found = files.find(path);
    if (found == files.end())
      return fail(Code::not_found, "cannot read the file " + path + ": No such file or directory");
    return found->second;
  }
  [[nodiscard]] Result<std::string> run(const std::vector<std::string>& command, Duration) override {
    commands.push_back(command);
    return runs ? runs(command) : fail(Code::not_found, "cannot start " + command.front() + ": No such file");
  }
  void in_background(std::function<void()> work, std::function<void()> done) override {
    loop_.post([this, work = std::move(work), done = std::move(done), alive = std::weak_ptr<int>(alive_)] {
      if (alive.expired()) return;
      work();
      loop_.post([done, alive] {
        if (!alive.expired()) done();
      });
    });
  }

  std::map<std::string, std::string> variables{{"HOME", "/home/me"}};
  std::map<std::string, std::string> files;
  std::map<std::string, bool> unreadable;
  std::function<Result<std::string>(const std::vector<std::string>&)> runs;
  std::vector<std::vector<std::string>> commands;
  mutable int reads = 0;

 private:
  Loop& loop_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace holdfast::test
