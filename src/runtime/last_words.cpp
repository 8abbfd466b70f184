#include "runtime/last_words.hpp"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "runtime/shortage.hpp"

namespace holdfast::runtime {
namespace {

/// Nothing here may ask for memory.
void say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

[[noreturn]] void out_of_memory() {
  say("holdfast: out of memory, so it ends here; what it holds is given back by nobody and runs out\n");
  ::_exit(1);
}

[[noreturn]] void uncaught() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
    say("holdfast: ended without a reason: this is a fault of holdfast, please report it\n");
  } catch (const std::bad_alloc&) {
    out_of_memory();
  } catch (const std::exception& thrown) {
    const auto shortage = runtime::shortage(thrown);
    say("holdfast: ");
    say(shortage ? std::string_view(shortage->detail) : std::string_view(thrown.what()));
    say(shortage ? "\n" : ": this is a fault of holdfast, please report it\n");
    if (shortage) ::_exit(1);
  } catch (...) {
    say("holdfast: an unknown exception: this is a fault of holdfast, please report it\n");
  }
  std::abort();
}

}  // namespace

void install_last_words() {
  std::set_new_handler(out_of_memory);
  std::set_terminate(uncaught);
}

}  // namespace holdfast::runtime
