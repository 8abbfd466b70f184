#include "store/dynamodb/endpoint.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "store/dynamodb/credentials_found.hpp"
#include "store/dynamodb/surroundings.hpp"

namespace holdfast::store::dynamodb {
namespace {

bool is_one_of(char sign, std::string_view signs) {
  return signs.find(sign) != std::string_view::npos;
}
bool is_digit(char sign) {
  return sign >= '0' && sign <= '9';
}
bool is_lower(char sign) {
  return sign >= 'a' && sign <= 'z';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return result;
}

bool is_true(const std::optional<std::string>& text) {
  return text && lower(*text) == "true";
}

/// It becomes part of a host name and of signatures.
std::optional<std::string> wrong_with_region(const std::string& region) {
  const auto good = [](char sign) { return is_lower(sign) || is_digit(sign) || sign == '-'; };
  if (region.size() > 63 || !std::ranges::all_of(region, good) || region.front() == '-' || region.back() == '-')
    return "'" + region + "' is no AWS region: write it like eu-west-1";
  if (is_lower(region.back()) && region.size() > 2 && is_digit(region[region.size() - 2]))
    return "'" + region + "' is an availability zone: leave its last letter out, " +
           region.substr(0, region.size() - 1);
  return std::nullopt;
}

struct Chosen {
  std::string value;
  std::string from;
};

Chosen choose_region(const EndpointWish& wish, const VariableOf& variable, const AwsFiles& files,
                     const AwsSection& profile) {
  if (!wish.region.empty()) return {wish.region, "the store's URL"};
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (auto value = variable(name)) return {*std::move(value), name};
  if (auto value = text_of(profile, "region")) return {*std::move(value), "profile " + files.places.profile};
  return {};
}

Result<Chosen> choose_endpoint(const std::string& service, const EndpointWish& wish, const VariableOf& variable,
                               const AwsFiles& files, const AwsSection& profile) {
  if (!wish.endpoint.empty()) return Chosen{wish.endpoint, "the store's URL"};
  if (is_true(variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")) ||
      is_true(text_of(profile, "ignore_configured_endpoint_urls")))
    return Chosen{};
  const std::string own = service == "sts" ? "AWS_ENDPOINT_URL_STS" : "AWS_ENDPOINT_URL_DYNAMODB";
  for (const std::string& name : {own, std::string("AWS_ENDPOINT_URL")})
    if (auto value = variable(name)) return Chosen{*std::move(value), name};
  const std::string& name = files.places.profile;
  if (const auto services = text_of(profile, "services")) {
    const auto section = files.found.services.find(*services);
    if (section == files.found.services.end())
      return fail(Code::usage, "profile " + name + " says services = " + *services + ", but there is no [services " +
                                   *services + "] in " + files.places.config);
    const auto block = section->second.find(service);
    if (block != section->second.end()) {
      const auto url = block->second.block.find("endpoint_url");
      if (url != block->second.block.end() && !url->second.empty())
        return Chosen{url->second, "[services " + *services + "]"};
    }
  }
  if (auto value = text_of(profile, "endpoint_url")) return Chosen{*std::move(value), "profile " + name};
  return Chosen{};
}

/// REGION of SERVICE.REGION.amazonaws.com.
std::optional<std::string> region_in(const std::string& service, const std::string& host) {
  if (!host.starts_with(service + ".")) return std::nullopt;
  const std::size_t begin = service.size() + 1;
  const std::size_t end = host.find('.', begin);
  if (end == std::string::npos) return std::nullopt;
  std::string region = host.substr(begin, end - begin);
  if (host.substr(end + 1) != domain_of_region(region)) return std::nullopt;
  return region;
}

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || port == 0)
    return fail(Code::usage, "its port is no number from 1 to 65535");
  return port;
}

bool is_host(std::string_view host, bool six) {
  const auto good = [six](char sign) {
    if (six) return is_digit(sign) || (sign >= 'a' && sign <= 'f') || sign == ':' || sign == '.';
    return is_lower(sign) || is_digit(sign) || is_one_of(sign, "-._");
  };
  return !host.empty() && host.size() <= 253 && std::ranges::all_of(host, good);
}

/// Takes host and port off; what is left is the path.
Result<HttpUrl> parse_authority(HttpUrl url, std::string_view authority) {
  const bool six = authority.starts_with('[');
  const std::size_t end = six ? authority.find(']') : authority.find(':');
  if (six && end == std::string_view::npos) return fail(Code::usage, "its [ is not closed");
  url.host = lower(authority.substr(six ? 1 : 0, six ? end - 1 : end));
  if (!is_host(url.host, six)) return fail(Code::usage, "its host is no host name or address");
  const std::string_view rest = authority.substr(std::min(authority.size(), six ? end + 1 : end));
  if (rest.empty()) return url;
  if (rest.front() != ':') return fail(Code::usage, "its host is no host name or address");
  Result<std::uint16_t> port = parse_port(rest.substr(1));
  if (!port) return tl::unexpected(port.error());
  url.port = *port;
  return url;
}

Result<Endpoint> choose(const std::string& service, const EndpointWish& wish, const VariableOf& variable,
                        const AwsFiles& files) {
  const auto found = files.found.profiles.find(files.places.profile);
  const AwsSection profile = found == files.found.profiles.end() ? AwsSection{} : found->second;
  Chosen region = choose_region(wish, variable, files, profile);
  const Result<Chosen> chosen = choose_endpoint(service, wish, variable, files, profile);
  if (!chosen) return tl::unexpected(chosen.error());

  std::string url;
  if (!chosen->value.empty()) {
    const Result<HttpUrl> parsed = parse_http_url(chosen->value);
    if (!parsed)
      return fail(Code::usage, "the endpoint (" + chosen->from + ") is no URL for " + service + ": " +
                                   parsed.error().detail + "; write it like http://localhost:8000");
    if (parsed->path.find('?') != std::string::npos)
      return fail(Code::usage, "the endpoint (" + chosen->from + ") has a ? in it: leave it out, and what follows");
    url = parsed->text();
    if (region.value.empty())
      if (auto named = region_in(service, parsed->host)) region = {*std::move(named), "the endpoint"};
  }
  if (region.value.empty())
    return fail(Code::usage,
                "no AWS region: write region=eu-west-1 (or another one) into the store's URL, or set "
                "AWS_REGION, or region in profile " +
                    files.places.profile + (url.empty() ? "" : "; servers that are not AWS's mostly take any"));
  if (const auto wrong = wrong_with_region(region.value))
    return fail(Code::usage, "the region (" + region.from + "): " + *wrong);
  if (!url.empty()) return Endpoint{url, region.value, chosen->from, region.from};
  if (is_true(variable("AWS_USE_FIPS_ENDPOINT")) || is_true(text_of(profile, "use_fips_endpoint")))
    return fail(Code::usage, "a FIPS endpoint is asked for (AWS_USE_FIPS_ENDPOINT): name it, endpoint=https://" +
                                 service + "-fips." + region.value + "." +
                                 std::string(domain_of_region(region.value)));
  url = "https://" + service + "." + region.value + "." + std::string(domain_of_region(region.value));
  return Endpoint{url, region.value, "region " + region.value, region.from, true};
}

}  // namespace

std::string HttpUrl::text() const {
  std::string result = tls ? "https://" : "http://";
  result += host.find(':') != std::string::npos ? '[' + host + ']' : host;
  if (port != 0) result += ':' + std::to_string(port);
  result += path;
  while (result.ends_with('/')) result.pop_back();
  return result;
}

Result<HttpUrl> parse_http_url(std::string_view text) {
  HttpUrl url;
  if (text.starts_with("https://")) {
    url.tls = true;
  } else if (!text.starts_with("http://")) {
    return fail(Code::usage, "it begins with neither http:// nor https://");
  }
  for (const char sign : text)
    if (sign <= ' ' || sign > '~' || is_one_of(sign, "\\\"<>^`{|}"))
      return fail(Code::usage, "it has a character in it that no URL has (a blank, a line break?)");
  if (text.find('#') != std::string_view::npos) return fail(Code::usage, "it has a # in it");
  const std::string_view rest = text.substr(url.tls ? 8 : 7);
  const std::size_t slash = rest.find_first_of("/?");
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos)
    return fail(Code::usage, "it has an @ before its path: user names and passwords are not used");
  if (slash != std::string_view::npos) url.path = (rest[slash] == '?' ? "/" : "") + std::string(rest.substr(slash));
  return parse_authority(std::move(url), authority);
}

std::string_view domain_of_region(std::string_view region) {
  // botocore's partitions.json.
  static constexpr std::pair<std::string_view, std::string_view> partitions[] = {
      {"cn-", "amazonaws.com.cn"},   {"eusc-", "amazonaws.eu"},      {"us-iso-", "c2s.ic.gov"},
      {"us-isob-", "sc2s.sgov.gov"}, {"eu-isoe-", "cloud.adc-e.uk"}, {"us-isof-", "csp.hci.ic.gov"},
  };
  for (const auto& [prefix, domain] : partitions)
    if (region.starts_with(prefix)) return domain;
  return "amazonaws.com";
}

Result<Endpoint> find_endpoint(const std::string& service, const EndpointWish& wish, const VariableOf& variable,
                               const AwsFiles& files) {
  return choose(service, wish, variable, files).map_error(one_line);
}

Result<std::string> streams_endpoint(const Endpoint& table, const EndpointWish& wish, const VariableOf& variable) {
  constexpr const char* name = "AWS_ENDPOINT_URL_DYNAMODB_STREAMS";
  if (const auto set = variable(name); set && !set->empty() && wish.endpoint.empty()) {
    const Result<HttpUrl> url = parse_http_url(*set);
    if (!url) return fail(Code::usage, std::string(name) + " is no URL: " + url.error().detail);
    return url->text();
  }
  Result<HttpUrl> url = parse_http_url(table.url);
  if (!url) return tl::unexpected(url.error());
  const std::string& host = url->host;
  const std::string_view domain = domain_of_region(table.region);
  const bool is_aws = (host.starts_with("dynamodb.") || host.starts_with("dynamodb-fips.")) &&
                      (host.ends_with("." + std::string(domain)) || host.ends_with(".api.aws"));
  if (is_aws) url->host = "streams." + host;
  return url->text();
}

Result<Endpoint> find_endpoint(const std::string& service, const EndpointWish& wish,
                               const Surroundings& surroundings) {
  const VariableOf variable = [&surroundings](const std::string& name) { return surroundings.variable(name); };
  if (!wish.region.empty() && !wish.endpoint.empty()) return find_endpoint(service, wish, variable, AwsFiles{});
  const Result<AwsFiles> files =
      read_aws_files(variable, [&surroundings](const std::string& path) { return surroundings.read_file(path); });
  if (!files) return tl::unexpected(one_line(files.error()));
  return find_endpoint(service, wish, variable, *files);
}

}  // namespace holdfast::store::dynamodb
