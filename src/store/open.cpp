#include <string_view>

#include "holdfast/store.hpp"
#include "store/memory/memory_store.hpp"

namespace holdfast {

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::applied:
      return "applied";
    case Outcome::conflict:
      return "conflict";
    case Outcome::throttled:
      return "throttled";
    case Outcome::unknown:
      return "unknown";
    case Outcome::rejected:
      return "rejected";
  }
  return "?";
}

Result<std::unique_ptr<Store>> open_store(const std::string& url, Loop& loop) {
  if (url == "memory:") return store::make_memory_store(std::make_shared<store::MemoryTable>(), loop);
  return fail(Code::usage, "cannot open the store \"" + url + "\": give sqlite:PATH or memory:");
}

}  // namespace holdfast
