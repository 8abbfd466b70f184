#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/dynamodb/credentials_provider.hpp"
#include "store/dynamodb/credentials_question.hpp"
#include "store/dynamodb/endpoint.hpp"

namespace holdfast::store::dynamodb {
namespace {

constexpr std::size_t answer_bytes_max = std::size_t{64} << 10U;
constexpr std::string_view role_path = "/latest/meta-data/iam/security-credentials/";

/// It becomes a part of a path.
bool is_role_name(std::string_view text) {
  const auto good = [](char sign) {
    return (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || (sign >= '0' && sign <= '9') ||
           std::string_view("_+=,.@-").find(sign) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, good);
}

/// A whole number within the limits; `otherwise` for anything else.
int number_or(const std::optional<std::string>& text, int least, int most, int otherwise) {
  if (!text) return otherwise;
  int value = 0;
  const char* const last = text->data() + text->size();
  const auto [end, error] = std::from_chars(text->data(), last, value);
  return error == std::errc() && end == last && value >= least && value <= most ? value : otherwise;
}

class MetadataProvider final : public CredentialProvider {
 public:
  explicit MetadataProvider(ProviderParts parts)
      : parts_(std::move(parts)), question_(parts_.loop, parts_.transport) {
    const Surroundings& surroundings = parts_.surroundings;
    // botocore's limits: 1 s, once. Whoever answers, with 5xx or 429, is asked a little more.
    const int unanswered = number_or(surroundings.variable("AWS_METADATA_SERVICE_NUM_ATTEMPTS"), 1, 10, 1);
    const int seconds = number_or(surroundings.variable("AWS_METADATA_SERVICE_TIMEOUT"), 1, 60, 1);
    patience_ = {.tries = std::max(unanswered, 3),
                 .each = std::chrono::seconds(seconds),
                 .pause = std::chrono::milliseconds(200),
                 .tries_unanswered = unanswered};
  }

  void ask(Handler handler) override;

 private:
  using Next = std::function<void(const runtime::HttpAnswer&)>;

  void ask_token();
  void ask_role();
  void ask_credentials(const std::string& role);
  [[nodiscard]] runtime::HttpRequest request(const std::string& method, const std::string& path) const;
  void end(Found found) { std::exchange(handler_, {})(std::move(found)); }
  void end_failed(Code code, const std::string& what) { end(Found::failed({code, "EC2 metadata: " + what})); }
  void end_nothing(const std::string& what) { end(Found::nothing("EC2 metadata: " + what)); }

  ProviderParts parts_;
  HttpQuestion question_;
  HttpQuestion::Patience patience_;
  Handler handler_;
  std::string base_;
  std::string token_;
};

void MetadataProvider::ask(Handler handler) {
  handler_ = std::move(handler);
  const Surroundings& surroundings = parts_.surroundings;
  const auto is = [&surroundings](const char* name, std::string_view value) {
    std::string text = surroundings.variable(name).value_or("");
    std::ranges::transform(text, text.begin(), [](char sign) {
      return sign >= 'A' && sign <= 'Z' ? static_cast<char>(sign - 'A' + 'a') : sign;
    });
    return text == value;
  };
  if (is("AWS_EC2_METADATA_DISABLED", "true")) return end_nothing("AWS_EC2_METADATA_DISABLED is true");
  base_ = is("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ipv6") ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
  if (const auto wanted = surroundings.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT")) {
    const Result<HttpUrl> url = parse_http_url(*wanted);
    if (!url) return end_failed(Code::usage, "AWS_EC2_METADATA_SERVICE_ENDPOINT is no URL: " + url.error().detail);
    base_ = url->text();
  }
  ask_token();
}

runtime::HttpRequest MetadataProvider::request(const std::string& method, const std::string& path) const {
  runtime::HttpRequest result;
  result.method = method;
  result.url = base_ + path;
  result.answer_bytes_max = answer_bytes_max;
  if (!token_.empty()) result.headers = {{"X-aws-ec2-metadata-token", token_}};
  return result;
}

void MetadataProvider::ask_token() {
  token_.clear();
  runtime::HttpRequest put = request("PUT", "/latest/api/token");
  put.headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}};
  question_.ask(std::move(put), patience_, [this](const runtime::HttpReply& reply) {
    if (!reply)
      return end_nothing("no answer from " + base_ +
                         " (on EC2, in a container: the instance's metadata hop limit has to be 2)");
    if (reply->status == 403) return end_nothing("it is switched off for this instance");
    if (reply->status != 200) {
      const std::string what = "it answered " + std::to_string(reply->status) + " when asked for a token";
      return reply->status >= 500 || reply->status == 429 ? end_failed(Code::unavailable, what) : end_nothing(what);
    }
    const bool visible = std::ranges::all_of(reply->body, [](char sign) { return sign > ' ' && sign <= '~'; });
    if (reply->body.empty() || !visible) return end_failed(Code::corrupt, "its token is none");
    token_ = reply->body;
    ask_role();
  });
}

void MetadataProvider::ask_role() {
  question_.ask(request("GET", std::string(role_path)), patience_, [this](const runtime::HttpReply& reply) {
    if (!reply) return end_failed(Code::unavailable, "no answer when asked for the role");
    if (reply->status == 404) return end_nothing("no role is attached to this instance");
    if (reply->status != 200)
      return end_failed(Code::unavailable,
                        "it answered " + std::to_string(reply->status) + " when asked for the role");
    const std::string role = reply->body.substr(0, reply->body.find_first_of("\r\n"));
    if (role.empty()) return end_nothing("no role is attached to this instance");
    if (!is_role_name(role)) return end_failed(Code::corrupt, "what it names as the role is no role's name");
    ask_credentials(role);
  });
}

void MetadataProvider::ask_credentials(const std::string& role) {
  question_.ask(request("GET", std::string(role_path) + role), patience_,
                [this, role](const runtime::HttpReply& reply) {
                  if (!reply) return end_failed(Code::unavailable, "no answer when asked for credentials");
                  if (reply->status != 200)
                    return end_failed(Code::unavailable,
                                      "it answered " + std::to_string(reply->status) + " for the role " + role);
                  Result<Credentials> credentials = credentials_from_json(reply->body, {});
                  // It also says with 200 that it has none: then the trust of the role is to be looked at.
                  if (!credentials)
                    return end_failed(credentials.error().code,
                                      credentials.error().detail + " (does the role " + role + " trust EC2?)");
                  credentials->provider = "EC2 role " + role;
                  correct_expiry(*credentials, *reply, parts_.loop.wall());
                  end(Found::have(*std::move(credentials)));
                });
}

}  // namespace

std::unique_ptr<CredentialProvider> metadata_provider(ProviderParts parts) {
  return std::make_unique<MetadataProvider>(std::move(parts));
}

}  // namespace holdfast::store::dynamodb
