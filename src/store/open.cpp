#include <algorithm>
#include <string_view>
#include <utility>

#include "holdfast/store.hpp"
#include "store/memory/memory_store.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace holdfast {

Result<std::unique_ptr<Store>> open_store(const std::string& url, Loop& loop) {
  const auto misuse = [&](const std::string& why) {
    return fail(Code::usage, "cannot open the store \"" + url + "\": " + why);
  };
  if (url == "memory:") return store::make_memory_store(std::make_shared<store::MemoryTable>(), loop);
  constexpr std::string_view sqlite = "sqlite:";
  if (!url.starts_with(sqlite)) return misuse("give sqlite:PATH or memory:");
  store::SqliteOptions options;
  const std::size_t question = std::min(url.find('?'), url.size());
  options.path = url.substr(sqlite.size(), question - sqlite.size());
  const std::string setting = url.substr(question);
  if (setting == "?sync=normal") {
    options.sync_full = false;
  } else if (!setting.empty() && setting != "?sync=full") {
    return misuse("after the path comes ?sync=full, ?sync=normal or nothing");
  }
  return store::make_sqlite_store(std::move(options), loop);
}

}  // namespace holdfast
