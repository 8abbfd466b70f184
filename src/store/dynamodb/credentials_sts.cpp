#include "store/dynamodb/credentials_sts.hpp"

#include <cstddef>
#include <utility>

#include "core/hexadecimal.hpp"
#include "store/dynamodb/credentials_found.hpp"

namespace holdfast::store::dynamodb {
namespace {

constexpr std::size_t answer_bytes_max = std::size_t{64} << 10U;

using Form = std::vector<std::pair<std::string, std::string>>;

runtime::HttpRequest request_of(const std::string& url, const Form& form) {
  runtime::HttpRequest request;
  request.method = "POST";
  request.url = url + "/";
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  request.answer_bytes_max = answer_bytes_max;
  for (const auto& [name, value] : form)
    request.body += (request.body.empty() ? "" : "&") + name + '=' + percent_encoded(value);
  return request;
}

std::string replace_entities(std::string_view text) {
  static constexpr std::pair<std::string_view, char> entities[] = {{"&lt;", '<'},    {"&gt;", '>'},   {"&quot;", '"'},
                                                                   {"&apos;", '\''}, {"&#39;", '\''}, {"&#34;", '"'},
                                                                   {"&amp;", '&'}};
  std::string result;
  while (!text.empty()) {
    std::size_t used = 1;
    char sign = text.front();
    for (const auto& [entity, stands_for] : entities)
      if (text.starts_with(entity)) {
        used = entity.size();
        sign = stands_for;
      }
    result += sign;
    text.remove_prefix(used);
  }
  return result;
}

}  // namespace

runtime::HttpRequest identity_request(const std::string& url, const RoleWish& role, const std::string& session_name,
                                      const std::string& token) {
  return request_of(url, {{"Action", "AssumeRoleWithWebIdentity"},
                          {"Version", "2011-06-15"},
                          {"RoleArn", role.role_arn},
                          {"RoleSessionName", session_name},
                          {"WebIdentityToken", token}});
}

runtime::HttpRequest role_request(const std::string& url, const RoleWish& role, const std::string& session_name) {
  Form form{{"Action", "AssumeRole"},
            {"Version", "2011-06-15"},
            {"RoleArn", role.role_arn},
            {"RoleSessionName", session_name}};
  if (!role.external_id.empty()) form.emplace_back("ExternalId", role.external_id);
  if (role.duration_s != 0) form.emplace_back("DurationSeconds", std::to_string(role.duration_s));
  return request_of(url, form);
}

std::string xml_text(std::string_view xml, std::string_view name) {
  const std::string open = "<" + std::string(name) + ">";
  const std::size_t begin = xml.find(open);
  if (begin == std::string_view::npos) return "";
  const std::size_t end = xml.find("</" + std::string(name) + ">", begin);
  if (end == std::string_view::npos) return "";
  return replace_entities(xml.substr(begin + open.size(), end - begin - open.size()));
}

Result<Credentials> credentials_from_sts(std::string_view xml) {
  const std::size_t begin = xml.find("<Credentials>");
  const std::size_t end = xml.find("</Credentials>");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
    return fail(Code::corrupt, "the answer of STS has no Credentials");
  const std::string_view part = xml.substr(begin, end - begin);
  Credentials credentials;
  credentials.access_key_id = xml_text(part, "AccessKeyId");
  credentials.secret_access_key = xml_text(part, "SecretAccessKey");
  credentials.session_token = xml_text(part, "SessionToken");
  credentials.expires_at = parse_iso_time(xml_text(part, "Expiration"));
  if (credentials.session_token.empty()) return fail(Code::corrupt, "the answer of STS has no SessionToken");
  if (!credentials.expires_at)
    return fail(Code::corrupt, "the answer of STS has no Expiration, or one that is no time");
  if (const auto wrong = wrong_with(credentials))
    return fail(Code::corrupt, "in the answer of STS, " + wrong->detail);
  return credentials;
}

Error error_of_sts(const runtime::HttpReply& reply, const std::vector<std::string>& secrets) {
  if (!reply) return {Code::unavailable, "STS gave no answer: " + quotable(reply.error().detail, secrets)};
  std::string text = "STS answered " + std::to_string(reply->status);
  const std::string type = xml_text(reply->body, "Code");
  const std::string message = xml_text(reply->body, "Message");
  if (!type.empty()) text += " " + quotable(type, secrets);
  if (!message.empty()) text += ": " + quotable(message, secrets);
  const bool later =
      reply->status >= 500 || reply->status == 429 || type == "Throttling" || type == "IDPCommunicationError";
  return {later ? Code::unavailable : Code::denied, text};
}

}  // namespace holdfast::store::dynamodb
