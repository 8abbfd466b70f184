#include "store/dynamodb/table_url.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "core/hexadecimal.hpp"
#include "core/utf8.hpp"
#include "holdfast/row.hpp"

namespace holdfast::store::dynamodb {

namespace {

constexpr std::size_t name_bytes_max = 255;

/// Parameters that give an attribute its name in the table.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> attribute_parameters{{
    {"state", attribute::desired_state},
    {"expires", attribute::expires_at},
    {"owner", attribute::owner},
    {"epoch", attribute::epoch},
    {"attempt", attribute::attempt},
    {"renewal", attribute::renewal},
    {"released", attribute::released_at},
    {"url", attribute::url},
    {"last_seq", attribute::last_seq},
    {"options", attribute::options},
    {"status", attribute::status},
    {"status_reason", attribute::status_reason},
    {"incarnation", attribute::incarnation},
    {"beat", attribute::beat},
    {"capacity", attribute::capacity},
    {"held", attribute::held},
    {"address", attribute::address},
    {"draining", attribute::draining},
    {"tombstone", attribute::tombstone_expires_at},
}};
constexpr std::array<std::string_view, 5> other_parameters{"region", "endpoint", "key", "index", "expires_unit"};

using Parameters = std::map<std::string, std::string, std::less<>>;

bool all_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

bool is_known(std::string_view name) {
  return std::find(other_parameters.begin(), other_parameters.end(), name) != other_parameters.end() ||
         std::any_of(attribute_parameters.begin(), attribute_parameters.end(),
                     [&](const auto& parameter) { return parameter.first == name; });
}

Result<Parameters> split(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view one = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const std::size_t equals = std::min(one.find('='), one.size());
    const std::string name(one.substr(0, equals));
    auto value = percent_decoded(one.substr(std::min(equals + 1, one.size())));
    if (!is_known(name)) {
      return fail(Code::usage, "it has no parameter \"" + name + "\"; there are " + table_url_parameters());
    }
    if (!value || value->empty() || value->size() > name_bytes_max || !is_utf8(*value)) {
      return fail(Code::usage, "give " + name + " a value: " + name + "=…");
    }
    if (!parameters.emplace(name, std::move(*value)).second) return fail(Code::usage, "it says " + name + " twice");
  }
  return parameters;
}

/// The value, and the parameter is done with.
std::optional<std::string> take(Parameters& parameters, std::string_view name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::nullopt;
  return std::move(parameters.extract(found).mapped());
}

/// One of two words.
Result<bool> take_choice(Parameters& parameters, std::string_view name, std::string_view yes, std::string_view no,
                         bool fallback) {
  const auto value = take(parameters, name);
  if (!value) return fallback;
  if (*value == yes) return true;
  if (*value == no) return false;
  return fail(Code::usage,
              std::string(name) + " is " + std::string(yes) + " or " + std::string(no) + ", not \"" + *value + "\"");
}

Result<std::string> check_table(std::string table) {
  if (table.starts_with("arn:")) {
    if (all_of(table, ":/._-")) return table;
    return fail(Code::usage, "\"" + table + "\" is no table's ARN");
  }
  if (table.size() >= 3 && table.size() <= name_bytes_max && all_of(table, "_.-")) return table;
  return fail(Code::usage, "the table's name has 3 to 255 letters, digits and _ . -, not \"" + table + "\"");
}

Result<std::string> check_endpoint(std::string endpoint) {
  const std::size_t scheme = endpoint.find("://");
  const std::string_view name = std::string_view(endpoint).substr(0, scheme == std::string::npos ? 0 : scheme);
  if (name != "http" && name != "https") {
    return fail(Code::usage, "the endpoint begins with http:// or https://, not \"" + endpoint + "\"");
  }
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool printable =
      std::all_of(endpoint.begin(), endpoint.end(), [](char c) { return c > ' ' && c < 0x7f && c != '@'; });
  if (endpoint.size() <= scheme + 3 || !printable || endpoint.find_first_of("?#") != std::string::npos) {
    return fail(Code::usage, "the endpoint is https://HOST[:PORT], not \"" + endpoint + "\"");
  }
  return endpoint;
}

Result<Names> take_names(Parameters& parameters) {
  auto key = take(parameters, "key");
  const auto seconds = take_choice(parameters, "expires_unit", "s", "ms", false);
  if (!seconds) return tl::unexpected(seconds.error());
  Names::Renamed renamed;
  for (const auto& [parameter, ours] : attribute_parameters) {
    if (auto theirs = take(parameters, parameter)) renamed.emplace(ours, std::move(*theirs));
  }
  // What is not renamed takes its own name away from others.
  for (const auto& [parameter, ours] : attribute_parameters) renamed.try_emplace(std::string(ours), ours);
  return Names::make(key ? std::move(*key) : "Pk", std::move(renamed),
                     *seconds ? ExpiryUnit::seconds : ExpiryUnit::milliseconds);
}

Result<TableOptions> parse(std::string_view url) {
  TableOptions options;
  options.url = url;
  url.remove_prefix(std::min(table_url_scheme.size(), url.size()));
  const std::size_t question = std::min(url.find('?'), url.size());
  auto table = check_table(std::string(url.substr(0, question)));
  if (!table) return tl::unexpected(table.error());
  options.table = std::move(*table);
  auto parameters = split(url.substr(std::min(question + 1, url.size())));
  if (!parameters) return tl::unexpected(parameters.error());

  options.region = take(*parameters, "region").value_or("");
  if (!all_of(options.region, "-")) {
    return fail(Code::usage, "the region is a name like eu-west-1, not \"" + options.region + "\"");
  }
  if (auto endpoint = take(*parameters, "endpoint")) {
    auto checked = check_endpoint(std::move(*endpoint));
    if (!checked) return tl::unexpected(checked.error());
    options.endpoint = std::move(*checked);
  }
  auto index = take(*parameters, "index");
  auto names = take_names(*parameters);
  if (!names) return tl::unexpected(names.error());
  options.names = std::move(*names);
  const auto their = [&](std::string_view ours) { return std::string(options.names.theirs(ours)); };
  options.index = index ? *index : their(attribute::desired_state) + "-" + their(attribute::expires_at) + "-index";
  return options;
}

}  // namespace

std::string table_url_parameters() {
  std::string names;
  for (const std::string_view name : other_parameters) names.append(names.empty() ? "" : ", ").append(name);
  for (const auto& [parameter, ours] : attribute_parameters) names.append(", ").append(parameter);
  return names;
}

Result<TableOptions> parse_table_url(std::string_view url) {
  auto options = parse(url);
  if (options) return options;
  return fail(options.error().code,
              "cannot open the store \"" + std::string(url) + "\": " + std::move(options.error().detail));
}

}  // namespace holdfast::store::dynamodb
