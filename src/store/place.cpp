#include "store/place.hpp"

#include <cstddef>
#include <deque>
#include <system_error>

#include "runtime/environment.hpp"
#include "runtime/regular_file.hpp"
#include "store/dynamodb/endpoint.hpp"
#include "store/dynamodb/table_url.hpp"
#include "store/open.hpp"

namespace holdfast::store {

namespace {

constexpr int links_most = 40;
constexpr std::size_t aws_file_bytes_most = std::size_t{64} << 10U;

Result<dynamodb::Endpoint> endpoint_here(const dynamodb::EndpointWish& wish) {
  const auto variable = [](const std::string& name) { return runtime::environment(name); };
  if (!wish.region.empty() && !wish.endpoint.empty()) return find_endpoint("dynamodb", wish, variable, {});
  const auto read = [](const std::string& path) -> Result<std::string> {
    if (path == "/dev/null") return std::string();  // how AWS's tools are told to read no file
    return runtime::read_regular_file(path, "the file", aws_file_bytes_most);
  };
  const auto files = dynamodb::read_aws_files(variable, read);
  if (!files) return tl::unexpected(files.error());
  return find_endpoint("dynamodb", wish, variable, *files);
}

}  // namespace

std::filesystem::path without_links(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path absolute = std::filesystem::absolute(path, ignored);
  std::deque<std::filesystem::path> left(absolute.begin(), absolute.end());
  std::filesystem::path result;
  for (int links = 0; !left.empty();) {
    const std::filesystem::path part = left.front();
    left.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      result = result.parent_path();
      continue;
    }
    std::error_code none;
    const std::filesystem::path target = std::filesystem::read_symlink(result / part, none);
    if (none || links++ >= links_most) {
      result /= part;
    } else {
      left.insert(left.begin(), target.begin(),
                  target.end());  // an absolute one begins with the root, which replaces
    }
  }
  return result;
}

Place place_of(const std::string& url) {
  if (url == "memory:" || !check_store_url(url)) return {};
  if (!is_remote(url)) return {{"table", "sqlite:" + without_links(path_of(url)).string()}};
  const auto options = dynamodb::parse_table_url(url);
  Place place{{"table", std::string(dynamodb::table_url_scheme) + options->table}};
  const dynamodb::EndpointWish wish{options->region, options->endpoint};
  const auto endpoint = endpoint_here(wish);
  const std::string& region = endpoint ? endpoint->region : wish.region;
  const std::string& server = endpoint ? endpoint->url : wish.endpoint;
  if (!region.empty()) place.emplace("region", region);
  if (!server.empty()) place.emplace("endpoint", server);
  return place;
}

}  // namespace holdfast::store
