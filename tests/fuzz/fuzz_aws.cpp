// What credentials are read from: AWS's files, answers of providers, URLs of endpoints. The first byte says which
// reader gets the rest. Whatever comes: nothing that would end a header, a path or a line of the log gets through,
// and errors show nothing of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/check.hpp"
#include "store/dynamodb/aws_files.hpp"
#include "store/dynamodb/credentials_found.hpp"
#include "store/dynamodb/credentials_plan.hpp"
#include "store/dynamodb/credentials_sts.hpp"
#include "store/dynamodb/endpoint.hpp"

namespace {

using namespace holdfast::store::dynamodb;
using holdfast::fuzz::check;

bool visible(std::string_view text) {
  return std::ranges::all_of(text, [](char sign) { return sign > ' ' && sign <= '~'; });
}

void check_keys(const Credentials& credentials) {
  check(!credentials.access_key_id.empty() && visible(credentials.access_key_id));
  check(!credentials.secret_access_key.empty() && visible(credentials.secret_access_key));
  check(visible(credentials.session_token));
}

void check_error(const holdfast::Error& error) {
  check(!error.detail.empty() && error.detail.find('\n') == std::string::npos);
}

void read_files(std::string_view text) {
  const std::size_t half = text.find('\0');
  const auto config = parse_aws_file(text.substr(0, half));
  const auto credentials =
      parse_aws_file(half == std::string_view::npos ? std::string_view() : text.substr(half + 1));
  if (!config) return check_error(config.error());
  if (!credentials) return check_error(credentials.error());
  for (const auto& [name, section] : *config)
    for (const auto& [setting, value] : section)
      check(!setting.empty() && (value.text.empty() || value.block.empty()));
  AwsFiles files;
  files.places.profile = "default";
  files.found = sort_out(*config, *credentials);
  const VariableOf none = [](const std::string&) { return std::nullopt; };
  const CredentialPlan plan = plan_credentials(none, files);
  if (plan.kind == CredentialPlan::Kind::keys) check_keys(plan.keys);
  if (plan.kind == CredentialPlan::Kind::process) check(!plan.command.empty() && !plan.command.front().empty());
  const auto endpoint = find_endpoint("dynamodb", {}, none, files);
  if (!endpoint) return check_error(endpoint.error());
  check(parse_http_url(endpoint->url).has_value() && visible(endpoint->region));
}

void read_url(std::string_view text) {
  const auto url = parse_http_url(text);
  if (!url) return check_error(url.error());
  check(visible(url->text()) && !url->host.empty() && url->host.find_first_of("/@?#\\") == std::string::npos);
  const auto again = parse_http_url(url->text());
  check(again && again->text() == url->text() && again->host == url->host && again->port == url->port);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = holdfast::fuzz::as_text(data, size);
  if (text.empty()) return 0;
  const auto which = static_cast<unsigned char>(text.front());
  text.remove_prefix(1);
  switch (which % 5) {
    case 0:
      read_files(text);
      break;
    case 1:
      read_url(text);
      break;
    case 2: {
      const auto credentials = credentials_from_json(text, {});
      credentials ? check_keys(*credentials) : check_error(credentials.error());
      break;
    }
    case 3: {
      const auto credentials = credentials_from_sts(text);
      credentials ? check_keys(*credentials) : check_error(credentials.error());
      holdfast::runtime::HttpAnswer answer;
      answer.status = 400;
      answer.body = text;
      check_error(error_of_sts(answer, {"secret"}));
      break;
    }
    default: {
      (void)split_as_shell(text);
      (void)parse_iso_time(text);
      const std::string quoted = quotable(text, {"secret"});
      check(quoted.size() <= 203 && quoted.find("secret") == std::string::npos);
    }
  }
  return 0;
}
