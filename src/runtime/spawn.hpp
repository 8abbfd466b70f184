#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"

namespace holdfast::runtime {

/// What to run and what it is given. Descriptors other than the three standard ones are not handed on, signal
/// dispositions and mask are the defaults (but a SIGHUP that is ignored stays so), standard input is empty unless
/// inherited.
struct SpawnOptions {
  enum class Output {
    inherit,  ///< where ours goes
    discard,
    pipe,    ///< to Child::read_line() and read_all(); who does not read holds the child up after 64 KiB
    file,    ///< appended to `output_file`, made when missing
    errors,  ///< where our standard error goes
  };

  std::vector<std::string> arguments;  ///< the first is the program, looked up in PATH where it has no slash
  std::vector<std::pair<std::string, std::string>> environment;  ///< on top of ours
  std::string directory;                                         ///< to start in; empty: ours
  bool inherit_input = false;
  std::optional<std::string> input;  ///< what it reads on standard input, without a file or a pipe
  Output output = Output::inherit;
  std::string output_file;
  bool errors_to_output = false;  ///< standard error goes where standard output goes
  bool discard_errors = false;    ///< standard error goes nowhere: for programs that may print secrets
  bool own_group = false;         ///< a process group of its own: kill() then reaches its children too
  /// With its own group: where standard input is a terminal and we are in its foreground, the group is put there, so
  /// that it can read, and is sent what is typed (^C). It cannot be stopped (^Z). Child::~Child takes the terminal
  /// back.
  bool takes_terminal = false;
  /// SIGKILL when the thread that spawned it ends, however it ends: for children that must not survive us.
  bool dies_with_parent = false;
};

/// How a child ended: by itself with an exit code, or by a signal (then `code` is 128 + signal, as a shell says).
struct Exit {
  int code = 0;
  int signal = 0;  ///< 0: it was no signal
  bool operator==(const Exit&) const = default;
};

/// One child process, owned: whoever destroys this ends the child (SIGKILL) and reaps it; until then its process
/// id stays taken. Movable. Not thread-safe. Nobody else may reap it: no handler for SIGCHLD that waits for all.
class Child {
 public:
  Child() = default;
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  [[nodiscard]] pid_t pid() const { return pid_; }  ///< also after it has ended
  /// Asks the system; false from the moment that it has ended.
  [[nodiscard]] bool running();
  /// To the child, or to its whole group where it has its own, which may outlive it.
  void kill(int signal);
  /// Waits for its end; nothing if it still runs after `limit`. May be asked again.
  std::optional<Exit> wait(Duration limit);
  /// SIGTERM, and SIGKILL if it has not ended within `grace`. How it ended.
  Exit stop(Duration grace);

  /// The next line of its output without its end; the last one need not have an end. Code::unavailable after
  /// `limit`, Code::not_found where the output has ended. Needs Output::pipe.
  Result<std::string> read_line(Duration limit);
  /// Everything up to the end of its output (or until `limit` has passed, also for a child that never stops
  /// printing; with 0 at most 4 KiB of what is there). Needs Output::pipe.
  std::string read_all(Duration limit);
  /// Closes our end of the pipe: further output of the child fails with EPIPE.
  void close_output();

 private:
  friend Result<Child> spawn(const SpawnOptions& options);
  void learn_exit();
  bool fill(Instant deadline);

  pid_t pid_ = -1;
  int pid_descriptor_ = -1;
  int output_ = -1;
  bool own_group_ = false;
  bool took_terminal_ = false;
  std::optional<Exit> exit_;
  std::string buffer_;
};

/// Whether there is such a program, as spawn() would look for it; it may fail to start all the same.
[[nodiscard]] Result<void> find_program(const std::string& name);

/// Starts it. Code::not_found or Code::denied where the program or the folder is not to be had, told here and
/// not by an exit code. Any thread.
[[nodiscard]] Result<Child> spawn(const SpawnOptions& options);

}  // namespace holdfast::runtime
