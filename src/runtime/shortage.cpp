#include "runtime/shortage.hpp"

#include <sys/resource.h>

#include <boost/system/system_error.hpp>
#include <cerrno>
#include <new>
#include <string>
#include <system_error>

namespace holdfast::runtime {
namespace {

/// The errno that an exception stands for; 0: none.
int number_of(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return ENOMEM;
  if (const auto* error = dynamic_cast<const std::system_error*>(&thrown)) return error->code().value();
  if (const auto* error = dynamic_cast<const boost::system::system_error*>(&thrown)) return error->code().value();
  return 0;
}

}  // namespace

std::optional<Error> shortage(const std::exception& thrown) {
  switch (number_of(thrown)) {
    case EMFILE: {
      rlimit limit{};
      const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
      return Error(Code::exhausted, "only " + (known ? std::to_string(limit.rlim_cur) + " " : std::string()) +
                                        "files may be open in this process, too few: raise the limit (ulimit -n)");
    }
    case ENFILE:
      return Error(Code::exhausted, "this machine has no more open files to give (fs.file-max)");
    case ENOMEM:
      return Error(Code::exhausted, "out of memory");
    case EAGAIN:
      return Error(Code::exhausted, "no thread can be made: memory or the number of threads is limited (ulimit -u)");
    default:
      return std::nullopt;
  }
}

}  // namespace holdfast::runtime
