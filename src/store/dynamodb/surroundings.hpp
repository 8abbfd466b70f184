#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"

namespace holdfast {
class Loop;
}

namespace holdfast::store::dynamodb {

/// What credentials are found with on a machine, HTTP aside: the environment, files, processes. A test hands in its
/// own.
class Surroundings {
 public:
  virtual ~Surroundings() = default;

  /// The variable's value; nothing where it is not set or empty. Any thread.
  [[nodiscard]] virtual std::optional<std::string> variable(const std::string& name) const = 0;

  /// All of a regular file. Code::not_found where there is none; errors hold nothing of the content. Any thread;
  /// waits for the disk.
  [[nodiscard]] virtual Result<std::string> read_file(const std::string& path) const = 0;

  /// What the program printed on its standard output, if it ended by itself, in time, with exit code 0, and printed
  /// no more than 64 KiB. Its standard input is empty, and what it says on standard error goes nowhere, since it may
  /// be a secret. Errors name the program and no argument. In the background only: it waits.
  [[nodiscard]] virtual Result<std::string> run(const std::vector<std::string>& command, Duration limit) = 0;

  /// Runs `work` aside, one after the other, then `done` on the loop. Neither inside the call. `done` does not run
  /// once this is destroyed; the destructor ends a process that is run and waits for `work` to return.
  virtual void in_background(std::function<void()> work, std::function<void()> done) = 0;
};

/// This machine: the environment as it is now, and a thread that is started when first needed.
[[nodiscard]] std::unique_ptr<Surroundings> this_machine(Loop& loop);

}  // namespace holdfast::store::dynamodb
