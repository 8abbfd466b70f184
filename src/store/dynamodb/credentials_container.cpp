#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/dynamodb/credentials_provider.hpp"
#include "store/dynamodb/credentials_question.hpp"
#include "store/dynamodb/endpoint.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;

// botocore's ContainerMetadataFetcher: 2 s for a try, three of them, a second between.
constexpr HttpQuestion::Patience patience{.tries = 3, .each = 2s, .pause = 1s, .tries_unanswered = 3};
constexpr std::size_t answer_bytes_max = std::size_t{64} << 10U;

/// 127.0.0.0/8 in its four-part form, or ::1.
bool is_loopback(const std::string& host) {
  if (host == "::1") return true;
  if (!host.starts_with("127.")) return false;
  int parts = 0;
  const char* at = host.data();
  const char* const last = at + host.size();
  while (at != last) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(at, last, value);
    if (error != std::errc() || value > 255 || ++parts > 4 || (end != last && *end != '.')) return false;
    at = end == last ? last : end + 1;
  }
  return parts == 4 && !host.ends_with('.');
}

/// Without TLS, a token is sent to, and secrets are taken from, this machine and its link only. A name other than
/// localhost could be made to mean any host.
bool is_allowed(const HttpUrl& url) {
  return url.tls || url.host == "localhost" || is_loopback(url.host) || url.host == "169.254.170.2" ||
         url.host == "169.254.170.23" || url.host == "fd00:ec2::23";
}

class ContainerProvider final : public CredentialProvider {
 public:
  explicit ContainerProvider(ProviderParts parts)
      : parts_(std::move(parts)), question_(parts_.loop, parts_.transport) {}

  void ask(Handler handler) override;

 private:
  [[nodiscard]] Result<std::string> url() const;
  void send(const std::string& url, const std::string& token, Handler handler);
  [[nodiscard]] Found read(const runtime::HttpReply& reply, const std::string& token) const;
  [[nodiscard]] static Found failed(Code code, const std::string& what) {
    return Found::failed({code, "container: " + what});
  }

  ProviderParts parts_;
  HttpQuestion question_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

Result<std::string> ContainerProvider::url() const {
  if (const auto relative = parts_.surroundings.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    const std::string whole = "http://169.254.170.2" + *relative;
    if (!relative->starts_with('/') || !parse_http_url(whole))
      return fail(Code::usage, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is no path that begins with /");
    return whole;
  }
  const auto full = parts_.surroundings.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  const Result<HttpUrl> url = parse_http_url(full.value_or(""));
  if (!url) return fail(Code::usage, "AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL: " + url.error().detail);
  if (!is_allowed(*url))
    return fail(Code::usage,
                "AWS_CONTAINER_CREDENTIALS_FULL_URI names the host " + url->host +
                    "; without https only localhost, loopback addresses, 169.254.170.2, 169.254.170.23 and "
                    "fd00:ec2::23 are asked for secrets");
  return *full;
}

void ContainerProvider::ask(Handler handler) {
  const Surroundings& surroundings = parts_.surroundings;
  if (!surroundings.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") &&
      !surroundings.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
    return handler(Found::nothing("container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and …_FULL_URI are not set"));
  Result<std::string> whole = url();
  if (!whole) return handler(failed(whole.error().code, whole.error().detail));
  const auto path = surroundings.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!path)
    return send(*whole, surroundings.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or(""), std::move(handler));
  const auto content = std::make_shared<Result<std::string>>();
  parts_.surroundings.in_background(
      [content, path = *path, from = &parts_.surroundings] { *content = from->read_file(path); },
      [this, content, url = *std::move(whole), handler = std::move(handler),
       alive = std::weak_ptr<int>(alive_)]() mutable {
        if (alive.expired()) return;
        if (!*content)
          return handler(
              failed(Code::unavailable, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: " + content->error().detail));
        std::string token = **content;
        if (token.ends_with('\n')) token.pop_back();
        if (token.ends_with('\r')) token.pop_back();
        if (token.empty())
          return handler(failed(Code::unavailable, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE is empty"));
        send(url, token, std::move(handler));
      });
}

void ContainerProvider::send(const std::string& url, const std::string& token, Handler handler) {
  // It becomes a header: a line break in it would begin another one.
  if (!std::ranges::all_of(token, [](char sign) { return sign >= ' ' && sign <= '~'; }))
    return handler(
        failed(Code::usage, "the authorization token has a line break or another control character in it"));
  runtime::HttpRequest request;
  request.url = url;
  request.headers = {{"Accept", "application/json"}};
  request.answer_bytes_max = answer_bytes_max;
  if (!token.empty()) request.headers.push_back({"Authorization", token});
  question_.ask(
      std::move(request), patience,
      [this, token, handler = std::move(handler)](const runtime::HttpReply& reply) { handler(read(reply, token)); });
}

Found ContainerProvider::read(const runtime::HttpReply& reply, const std::string& token) const {
  if (!reply) return failed(Code::unavailable, "no answer: " + quotable(reply.error().detail, {token}));
  if (reply->status != 200)
    return failed(reply->status >= 500 || reply->status == 429 ? Code::unavailable : Code::denied,
                  "the endpoint answered " + std::to_string(reply->status));
  Result<Credentials> credentials = credentials_from_json(reply->body, {});
  if (!credentials) return failed(credentials.error().code, credentials.error().detail);
  credentials->provider = "container";
  correct_expiry(*credentials, *reply, parts_.loop.wall());
  return Found::have(*std::move(credentials));
}

}  // namespace

std::unique_ptr<CredentialProvider> container_provider(ProviderParts parts) {
  return std::make_unique<ContainerProvider>(std::move(parts));
}

}  // namespace holdfast::store::dynamodb
