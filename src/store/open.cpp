#include "store/open.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "store/dynamodb/connection.hpp"
#include "store/dynamodb/dynamodb_store.hpp"
#include "store/dynamodb/surroundings.hpp"
#include "store/memory/memory_store.hpp"
#include "store/sqlite/failure.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace holdfast {

namespace store {

namespace {

constexpr std::string_view sqlite_scheme = "sqlite:";

tl::unexpected<Error> misuse(const std::string& url, const std::string& why) {
  return fail(Code::usage, "cannot open the store \"" + url + "\": " + why);
}

Result<SqliteOptions> parse_sqlite_url(const std::string& url) {
  SqliteOptions parsed;
  parsed.path = path_of(url);
  std::string_view rest = std::string_view(url).substr(std::min(url.find('?'), url.size()));
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view setting = rest.substr(0, rest.find('&'));
    rest.remove_prefix(setting.size());
    if (setting == "sync=normal" || setting == "sync=full") {
      parsed.sync_full = setting == "sync=full";
    } else if (setting == "create=never" || setting == "create=missing") {
      parsed.is_expected = setting == "create=never";
    } else {
      return misuse(url,
                    "after the path comes nothing, or ?sync=full, ?sync=normal, ?create=never, ?create=missing "
                    "(several with & between them)");
    }
  }
  return parsed;
}

Result<std::unique_ptr<Store>> open_dynamodb(const std::string& url, Loop& loop, const MakeTransport& transport,
                                             const Making& making) {
  if (!transport) return misuse(url, "nothing was handed in by which a server can be reached");
  auto options = dynamodb::parse_table_url(url);
  if (!options) return tl::unexpected(options.error());
  options->making = making;
  std::unique_ptr<runtime::HttpTransport> http;
  try {
    http = transport();
  } catch (const std::runtime_error& error) {  // where there is no libcurl
    return fail(Code::not_found, "cannot open the store \"" + url + "\": " + error.what());
  }
  auto callers = dynamodb::connect(*options, loop, std::move(http), dynamodb::this_machine(loop));
  if (!callers) return misuse(url, callers.error().detail);
  return dynamodb::make_dynamodb_store(*std::move(options), std::move(callers->table), loop,
                                       std::move(callers->stream));
}

}  // namespace

bool is_remote(const std::string& url) {
  return url.starts_with(dynamodb::table_url_scheme);
}

Duration expiry_step(const std::string& url) {
  const auto options = dynamodb::parse_table_url(url);
  const bool seconds = is_remote(url) && options && options->names.expiry_unit() == dynamodb::ExpiryUnit::seconds;
  return seconds ? Duration(std::chrono::seconds(1)) : Duration(std::chrono::milliseconds(1));
}

std::string path_of(const std::string& url) {
  const std::string path = url.substr(std::min(sqlite_scheme.size(), url.size()));
  return path.substr(0, path.find('?'));
}

bool may_create(const std::string& url) {
  const auto parsed = parse_sqlite_url(url);
  return !is_remote(url) && parsed && !parsed->is_expected;
}

std::string expecting(const std::string& url) {
  if (!may_create(url) || url == "memory:") return url;
  return url + (url.find('?') == std::string::npos ? "?" : "&") + "create=never";
}

std::optional<std::string> absent_file(const std::string& url) {
  const std::string path = is_remote(url) ? "" : path_of(url);
  std::error_code ignored;
  if (path.empty() || std::filesystem::exists(path, ignored)) return std::nullopt;
  return missing_file(path);
}

Result<void> check_store_url(const std::string& url) {
  if (url == "memory:") return {};
  if (url.starts_with(sqlite_scheme)) return parse_sqlite_url(url).map([](const SqliteOptions&) {});
  if (is_remote(url)) return dynamodb::parse_table_url(url).map([](const dynamodb::TableOptions&) {});
  return misuse(url, "give sqlite:PATH or dynamodb://TABLE?region=REGION");
}

Result<std::unique_ptr<Store>> open_store(const std::string& url, Loop& loop, const MakeTransport& transport,
                                          const Making& making) {
  if (auto checked = check_store_url(url); !checked) return tl::unexpected(checked.error());
  if (url == "memory:") return make_memory_store(std::make_shared<MemoryTable>(), loop);
  if (is_remote(url)) return open_dynamodb(url, loop, transport, making);
  auto parsed = parse_sqlite_url(url);
  if (!parsed) return tl::unexpected(parsed.error());
  return make_sqlite_store(*std::move(parsed), loop);
}

}  // namespace store

Result<std::unique_ptr<Store>> open_store(const std::string& url, Loop& loop) {
  return store::open_store(url, loop, nullptr);
}

}  // namespace holdfast
