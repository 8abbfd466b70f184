#include "runtime/sigv4.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/hexadecimal.hpp"

namespace holdfast::runtime {
namespace {

constexpr std::string_view algorithm = "AWS4-HMAC-SHA256";

/// 20150830T123600Z; its first eight characters are the day.
std::string signing_time(WallTime wall) {
  const auto day = std::chrono::floor<std::chrono::days>(wall);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::seconds>(wall - day));
  char text[64];
  std::snprintf(text, sizeof text, "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

/// The parts of a URL that are signed.
struct Target {
  std::string_view host, path, query;
};

Target target_of(std::string_view url) {
  Target target;
  const std::size_t scheme = std::min(url.find("://"), url.size());
  const bool secure = url.substr(0, scheme) == "https";
  url.remove_prefix(std::min(scheme + 3, url.size()));
  url = url.substr(0, url.find('#'));
  const std::size_t question = std::min(url.find('?'), url.size());
  if (question < url.size()) target.query = url.substr(question + 1);
  url = url.substr(0, question);
  const std::size_t slash = std::min(url.find('/'), url.size());
  target.host = url.substr(0, slash);
  target.path = slash < url.size() ? url.substr(slash) : "/";
  // The Host header is without a port that the scheme implies.
  const std::string_view implied = secure ? ":443" : ":80";
  if (target.host.ends_with(implied)) target.host.remove_suffix(implied.size());
  return target;
}

/// Its parts in order.
void append_query(std::string& out, std::string_view query) {
  std::vector<std::pair<std::string_view, std::string_view>> parts;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    const std::size_t sign = std::min(part.find('='), part.size());
    parts.emplace_back(part.substr(0, sign), part.substr(std::min(sign + 1, part.size())));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  std::sort(parts.begin(), parts.end());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += '&';
    out.append(parts[i].first).append("=").append(parts[i].second);
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return out;
}

/// Without blanks at its ends, and with single ones inside.
void append_value(std::string& out, std::string_view value) {
  bool blank = false, begun = false;
  for (const char letter : value) {
    if (letter == ' ' || letter == '\t') {
      blank = begun;
      continue;
    }
    if (blank) out += ' ';
    out += letter;
    blank = false;
    begun = true;
  }
}

using Headers = std::vector<std::pair<std::string, std::string_view>>;  // the name in lower case, the value

Headers headers_in_order(const HttpRequest& request, std::string_view host) {
  Headers headers;
  headers.reserve(request.headers.size() + 1);
  headers.emplace_back("host", host);
  for (const HttpHeader& header : request.headers) headers.emplace_back(lower(header.name), header.value);
  std::stable_sort(headers.begin(), headers.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  return headers;
}

std::string names_of(const Headers& headers) {
  std::string names;
  for (const auto& [name, value] : headers) {
    if (!names.empty()) names += ';';
    names += name;
  }
  return names;
}

std::string_view view(const unsigned char* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

SigV4::SigV4()
    : sha256_(EVP_MD_fetch(nullptr, "SHA256", nullptr)),
      mac_(EVP_MAC_fetch(nullptr, "HMAC", nullptr)),
      mac_context_(mac_ ? EVP_MAC_CTX_new(mac_.get()) : nullptr) {
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_end()};
  if (!sha256_ || !mac_context_ || EVP_MAC_CTX_set_params(mac_context_.get(), parameters) != 1) {
    throw std::runtime_error("OpenSSL has no SHA-256 or HMAC to sign requests with");
  }
}

SigV4::~SigV4() {
  OPENSSL_cleanse(secret_.data(), secret_.size());
  OPENSSL_cleanse(key_.data(), key_.size());
}

SigV4::Digest SigV4::sha256(std::string_view text) const {
  Digest digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, sha256_.get(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL cannot make a SHA-256");
  }
  return digest;
}

SigV4::Digest SigV4::hmac(std::string_view key, std::string_view text) const {
  Digest digest{};
  std::size_t size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  EVP_MAC_CTX* const context = mac_context_.get();
  if (EVP_MAC_init(context, reinterpret_cast<const unsigned char*>(key.data()), key.size(), nullptr) != 1 ||
      EVP_MAC_update(context, bytes, text.size()) != 1 ||
      EVP_MAC_final(context, digest.data(), &size, digest.size()) != 1) {
    throw std::runtime_error("OpenSSL cannot make an HMAC");
  }
  return digest;
}

void SigV4::make_key(const AwsSigning& signing, std::string_view day, const std::string& scope) {
  if (scope == scope_ && signing.secret_access_key == secret_) return;
  std::string begin = "AWS4" + signing.secret_access_key;
  key_ = hmac(begin, day);
  OPENSSL_cleanse(begin.data(), begin.size());
  for (const std::string_view part :
       {std::string_view(signing.region), std::string_view(signing.service), std::string_view("aws4_request")}) {
    key_ = hmac(view(key_.data(), key_.size()), part);
  }
  OPENSSL_cleanse(secret_.data(), secret_.size());
  secret_ = signing.secret_access_key;
  scope_ = scope;
}

void SigV4::sign(HttpRequest& request, WallTime now) {
  const AwsSigning& signing = *request.signing;
  const std::string time = signing_time(now + std::chrono::floor<std::chrono::milliseconds>(signing.clock_offset));
  const std::string_view day = std::string_view(time).substr(0, 8);
  const std::string scope = std::string(day) + "/" + signing.region + "/" + signing.service + "/aws4_request";
  request.headers.push_back({"X-Amz-Date", time});
  if (!signing.session_token.empty()) request.headers.push_back({"X-Amz-Security-Token", signing.session_token});

  const Target target = target_of(request.url);
  const Headers headers = headers_in_order(request, target.host);
  const std::string names = names_of(headers);
  std::string text = request.method + "\n";
  text += percent_encoded(target.path, "/");  // once more, as every service but S3 wants it
  text += '\n';
  append_query(text, target.query);
  text += '\n';
  for (const auto& [name, value] : headers) {
    text.append(name).append(":");
    append_value(text, value);
    text += '\n';
  }
  text.append("\n").append(names).append("\n");
  append_hexadecimal(sha256(request.body), text);

  std::string to_sign = std::string(algorithm) + "\n" + time + "\n" + scope + "\n";
  append_hexadecimal(sha256(text), to_sign);
  make_key(signing, day, scope);
  std::string authorization = std::string(algorithm) + " Credential=" + signing.access_key_id + "/" + scope +
                              ", SignedHeaders=" + names + ", Signature=";
  append_hexadecimal(hmac(view(key_.data(), key_.size()), to_sign), authorization);
  request.headers.push_back({"Authorization", std::move(authorization)});
}

}  // namespace holdfast::runtime
