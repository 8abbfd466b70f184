#include "runtime/spawn.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "holdfast/assert.hpp"
#include "runtime/clock.hpp"

namespace holdfast::runtime {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void reset(int value = -1) {
    if (value_ >= 0) ::close(value_);
    value_ = value;
  }
  [[nodiscard]] int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

std::vector<std::string> merged_environment(const SpawnOptions& options) {
  std::vector<std::string> merged;
  for (const auto& [name, value] : options.environment) merged.push_back(name + '=' + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const auto overridden = [&](const auto& pair) { return pair.first == name; };
    if (std::ranges::none_of(options.environment, overridden)) merged.emplace_back(text);
  }
  return merged;
}

/// What execvp would find, looked for before the fork: afterwards only the simplest calls are allowed.
std::string path_of_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    const std::size_t end = rest.find(':');
    const std::string_view folder = rest.substr(0, end);
    std::string candidate = (folder.empty() ? std::string(".") : std::string(folder)) + '/' + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    if (end == std::string_view::npos) return name;
    rest.remove_prefix(end + 1);
  }
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

struct Plan {
  const char* program;
  char** arguments;
  char** environment;
  const char* directory;  // null: stay
  int input;              // -1: inherit
  int output;             // -1: inherit
  int errors;             // -1: inherit, or where the output goes
  bool errors_to_output;
  bool own_group;
  bool takes_terminal;
  bool dies_with_parent;
  pid_t parent;
  int report;  // where errno is written when the program cannot be started
};

/// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(const Plan& plan) {
  const auto give_up = [&plan] {
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(plan.report, &error, sizeof error);
    ::_exit(127);
  };
  if (plan.own_group && ::setpgid(0, 0) != 0) give_up();
  if (plan.dies_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) ::_exit(127);  // it ended before we asked
  }
  struct sigaction on_hang_up {};
  const bool hears_hang_up = ::sigaction(SIGHUP, nullptr, &on_hang_up) != 0 || on_hang_up.sa_handler != SIG_IGN;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGHUP || hears_hang_up) ::signal(signal, SIG_DFL);  // nohup means the command, too
  }
  if (plan.takes_terminal) {
    // Whoever is not in the foreground yet would be stopped for this.
    ::signal(SIGTTOU, SIG_IGN);
    ::tcsetpgrp(STDIN_FILENO, ::getpid());
    ::signal(SIGTTOU, SIG_DFL);
    ::signal(SIGTSTP, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan.directory != nullptr && ::chdir(plan.directory) != 0) give_up();
  if (plan.input >= 0 && ::dup2(plan.input, STDIN_FILENO) < 0) give_up();
  if (plan.output >= 0 && ::dup2(plan.output, STDOUT_FILENO) < 0) give_up();
  if (plan.errors >= 0 && ::dup2(plan.errors, STDERR_FILENO) < 0) give_up();
  if (plan.errors_to_output && ::dup2(STDOUT_FILENO, STDERR_FILENO) < 0) give_up();
  // Whatever a library opened without O_CLOEXEC stays here.
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) give_up();
  ::execve(plan.program, plan.arguments, plan.environment);
  give_up();
  ::_exit(127);
}

/// A file without a name that has this text, to be read from its beginning; -1 where there is no room (errno).
int file_of(const std::string& text) {
  Descriptor file(::memfd_create("input", MFD_CLOEXEC));
  if (file.get() < 0) return -1;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    done += static_cast<std::size_t>(written);
  }
  return ::lseek(file.get(), 0, SEEK_SET) == 0 ? file.release() : -1;
}

int input_of(const SpawnOptions& options) {
  return options.input ? file_of(*options.input) : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

Error cannot_start(const std::string& what, int error) {
  Code code = Code::internal;
  if (error == ENOENT || error == ENOTDIR) code = Code::not_found;
  if (error == EACCES || error == EPERM) code = Code::denied;
  if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE) code = Code::exhausted;
  return {code, "cannot start " + what + ": " + std::strerror(error)};
}

/// What is to be its standard output, if that is not ours, and our end of a pipe.
Result<void> open_output(const SpawnOptions& options, Descriptor& output, Descriptor& read_end) {
  const std::string& name = options.arguments.front();
  int ends[2];
  switch (options.output) {
    case SpawnOptions::Output::inherit:
      break;
    case SpawnOptions::Output::discard:
      output.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
      break;
    case SpawnOptions::Output::pipe:
      if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(cannot_start(name, errno));
      read_end.reset(ends[0]);
      output.reset(ends[1]);
      break;
    case SpawnOptions::Output::errors:
      output.reset(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));  // a socket could not be opened by a name
      if (output.get() < 0) return tl::unexpected(cannot_start(name + " (its output)", errno));
      break;
    case SpawnOptions::Output::file:
      output.reset(::open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
      if (output.get() < 0)
        return tl::unexpected(cannot_start(name + " (output to " + options.output_file + ")", errno));
      break;
  }
  return {};
}

/// Why the child could not become the program, from its end of the pipe; 0: it has become it.
int start_error(int report) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

int poll_limit(Instant deadline) {
  const Duration left = deadline - boot_now();
  if (left <= Duration::zero()) return 0;
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<std::int64_t>(rounded, 1'000'000'000));
}

/// True when it can be read or has ended; false when the deadline has passed.
bool wait_readable(int descriptor, Instant deadline) {
  while (true) {
    pollfd entry{descriptor, POLLIN, 0};
    const int ready = ::poll(&entry, 1, poll_limit(deadline));
    if (ready > 0) return true;
    if (ready == 0 && boot_now() >= deadline) return false;
    HOLDFAST_ASSERT(ready >= 0 || errno == EINTR, "polling one open descriptor works");
  }
}

}  // namespace

Result<void> find_program(const std::string& name) {
  if (::access(path_of_program(name).c_str(), X_OK) != 0) return tl::unexpected(cannot_start(name, errno));
  return {};
}

Result<Child> spawn(const SpawnOptions& options) {
  HOLDFAST_ASSERT(!options.arguments.empty(), "a program to start");
  const std::string& name = options.arguments.front();
  const Descriptor input(options.inherit_input ? -1 : input_of(options));
  if (!options.inherit_input && input.get() < 0) return tl::unexpected(cannot_start(name + " (its input)", errno));
  Descriptor output;
  Descriptor read_end;
  if (const auto opened = open_output(options, output, read_end); !opened) {
    return tl::unexpected<Error>(opened.error());
  }
  Descriptor errors;
  if (options.discard_errors) errors.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(cannot_start(name, errno));
  const Descriptor report(ends[0]);
  Descriptor report_write(ends[1]);

  const std::string program = path_of_program(name);
  const bool takes_terminal = options.takes_terminal && options.own_group && options.inherit_input &&
                              ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = merged_environment(options);
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  const Plan plan{program.c_str(),
                  const_cast<char**>(argument_pointers.data()),
                  const_cast<char**>(environment_pointers.data()),
                  options.directory.empty() ? nullptr : options.directory.c_str(),
                  input.get(),
                  output.get(),
                  errors.get(),
                  options.errors_to_output,
                  options.own_group,
                  takes_terminal,
                  options.dies_with_parent,
                  ::getpid(),
                  report_write.get()};
  const pid_t pid = ::fork();
  if (pid < 0) return tl::unexpected(cannot_start(name, errno));
  if (pid == 0) become(plan);

  report_write.reset();
  if (const int error = start_error(report.get()); error != 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return tl::unexpected(cannot_start(name, error));
  }
  Child child;
  child.pid_ = pid;
  child.own_group_ = options.own_group;
  child.took_terminal_ = takes_terminal;
  child.output_ = read_end.release();
  child.pid_descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (child.pid_descriptor_ < 0) return tl::unexpected(cannot_start(name, errno));
  return child;
}

Child::~Child() {
  kill(SIGKILL);
  while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (took_terminal_) {
    const auto before = ::signal(SIGTTOU, SIG_IGN);
    ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
    ::signal(SIGTTOU, before);
  }
  if (output_ >= 0) ::close(output_);
  if (pid_descriptor_ >= 0) ::close(pid_descriptor_);
}

Child::Child(Child&& other) noexcept {
  *this = std::move(other);
}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pid_descriptor_, other.pid_descriptor_);
  std::swap(output_, other.output_);
  std::swap(own_group_, other.own_group_);
  std::swap(took_terminal_, other.took_terminal_);
  std::swap(exit_, other.exit_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

void Child::learn_exit() {
  // WNOWAIT: as long as the child is not reaped its id, and so that of its group, can belong to nobody else.
  siginfo_t info{};
  int result = 0;
  do {
    result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  } while (result < 0 && errno == EINTR);
  HOLDFAST_ASSERT(result == 0, "a child that was not reaped can be waited for");
  exit_ = info.si_code == CLD_EXITED ? Exit{info.si_status, 0} : Exit{128 + info.si_status, info.si_status};
}

bool Child::running() {
  return pid_ > 0 && !wait(Duration::zero());
}

void Child::kill(int signal) {
  if (pid_ <= 0) return;
  // Its group may live on after it.
  ::kill(own_group_ ? -pid_ : pid_, signal);
}

std::optional<Exit> Child::wait(Duration limit) {
  if (exit_ || pid_ <= 0) return exit_;
  if (!wait_readable(pid_descriptor_, boot_now() + limit)) return std::nullopt;
  learn_exit();
  return exit_;
}

Exit Child::stop(Duration grace) {
  kill(SIGTERM);
  if (!wait(grace)) {
    kill(SIGKILL);
    if (pid_ > 0) learn_exit();
  }
  return exit_.value_or(Exit{});
}

bool Child::fill(Instant deadline) {
  if (!wait_readable(output_, deadline)) return false;
  char block[4096];
  const ssize_t got = ::read(output_, block, sizeof block);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) {
    close_output();
  } else {
    buffer_.append(block, static_cast<std::size_t>(got));
  }
  return true;
}

Result<std::string> Child::read_line(Duration limit) {
  const Instant deadline = boot_now() + limit;
  while (true) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (output_ < 0) {
      if (buffer_.empty()) return fail(Code::not_found, "the output of the child has ended");
      return std::exchange(buffer_, {});
    }
    const bool late = !fill(deadline) || boot_now() >= deadline;
    if (late && output_ >= 0 && buffer_.find('\n') == std::string::npos)
      return fail(Code::unavailable, "the child printed no line in time");
  }
}

std::string Child::read_all(Duration limit) {
  const Instant deadline = boot_now() + limit;
  while (output_ >= 0 && fill(deadline) && boot_now() < deadline) {
  }
  return std::exchange(buffer_, {});
}

void Child::close_output() {
  if (output_ >= 0) ::close(std::exchange(output_, -1));
}

}  // namespace holdfast::runtime
