#include "store/dynamodb/answer.hpp"

#include <zlib.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "store/dynamodb/members.hpp"

namespace holdfast::store::dynamodb {
namespace {

namespace json = boost::json;

constexpr std::size_t words_max = 400;

/// Attributes nest 32 deep, and each of them is two levels of JSON, inside an item, a list of items and an answer.
constexpr std::size_t json_depth_max = 100;

std::optional<json::object> parse_object(const std::string& text) {
  json::parse_options options;
  options.max_depth = json_depth_max;
  boost::system::error_code error;
  json::value value = json::parse(text, error, {}, options);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.as_object());
}

/// What the header says the body's CRC-32 is; nothing where it does not say.
std::optional<std::uint64_t> checksum_told(const runtime::HttpAnswer& answer) {
  const std::string* text = answer.header("X-Amz-Crc32");
  if (text == nullptr) return std::nullopt;
  std::uint64_t told = UINT64_MAX;  // no checksum: what is no number is a mismatch
  std::from_chars(text->data(), text->data() + text->size(), told);
  return told;
}

bool is_damaged(const runtime::HttpAnswer& answer) {
  const auto told = checksum_told(answer);
  if (!told) return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(answer.body.data());
  return *told != ::crc32_z(0, bytes, answer.body.size());
}

/// `com.amazonaws.dynamodb.v20120810#TypeException:http://…` without what is around the type.
std::string bare_type(std::string text) {
  text.erase(std::min(text.find(':'), text.size()));
  const std::size_t hash = text.rfind('#');
  return hash == std::string::npos ? text : text.substr(hash + 1);
}

std::string type_of(const json::object& body, const runtime::HttpAnswer& answer) {
  std::string type = text_in(body, "__type");
  if (type.empty()) {
    if (const std::string* header = answer.header("x-amzn-ErrorType")) type = *header;
  }
  return bare_type(std::move(type));
}

Verdict gravest(const json::object& body) {
  Verdict worst = Verdict::applied;
  for (const json::value& reason : array_in(body, "CancellationReasons")) {
    if (!reason.is_object()) return Verdict::rejected;
    const Verdict verdict = classify_cancelled(text_in(reason.as_object(), "Code"));
    if (verdict == Verdict::rejected) return verdict;
    if (verdict == Verdict::conflict || worst == Verdict::applied) worst = verdict;
  }
  // Without reasons it says only that nothing happened.
  return worst == Verdict::applied ? Verdict::throttled : worst;
}

/// One short line.
std::string in_one_line(std::string text) {
  text.erase(std::min(text.find_first_of("\r\n"), text.size()));
  if (text.size() > words_max) {
    std::size_t end = words_max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
    text.erase(end);
    text += "…";
  }
  return text;
}

void blot(std::string& text, const std::string& secret) {
  if (secret.empty()) return;
  for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
    text.replace(at, secret.size(), "***");
  }
}

/// Only in what is for people: an item that came with the error is data, and a short secret may well occur in it.
std::string blot_messages(json::object& body, const Credentials& sent_with) {
  std::string message;
  for (const std::string_view name : {"Message", "message"}) {
    if (!body.contains(name)) continue;
    message = without_secrets(text_in(body, name), sent_with);
    body[name] = message;
  }
  json::value* reasons = body.if_contains("CancellationReasons");
  if (reasons != nullptr && reasons->is_array()) {
    for (json::value& reason : reasons->as_array()) {
      if (reason.is_object()) blot_messages(reason.as_object(), sent_with);
    }
  }
  return message;
}

Attempted read_error(const runtime::HttpAnswer& answer, const Credentials& sent_with) {
  Attempted attempted;
  auto body = parse_object(answer.body);
  const bool damaged = is_damaged(answer);
  if (body) attempted.body = std::move(*body);
  attempted.type = damaged ? "" : type_of(attempted.body, answer);
  std::string message = blot_messages(attempted.body, sent_with);
  if (damaged) {
    attempted.verdict = Verdict::uncertain;
    attempted.words = "an error (" + std::to_string(answer.status) + ") whose checksum does not match";
    attempted.body = {};
    return attempted;
  }
  attempted.verdict = attempted.type == "TransactionCanceledException"
                          ? gravest(attempted.body)
                          : classify(answer.status, attempted.type, message);
  const std::string status = "HTTP status " + std::to_string(answer.status);
  attempted.words = attempted.type.empty() ? status : attempted.type;
  if (!message.empty()) attempted.words += ": " + in_one_line(std::move(message));
  return attempted;
}

}  // namespace

std::string without_secrets(std::string text, const Credentials& credentials) {
  blot(text, credentials.secret_access_key);
  blot(text, credentials.session_token);
  return text;
}

Attempted read_attempt(runtime::HttpReply reply, const Credentials& sent_with) {
  Attempted attempted;
  if (!reply) {
    const bool sent = reply.error().stage == runtime::HttpStage::sent;
    attempted.verdict = sent ? Verdict::uncertain : Verdict::not_sent;
    attempted.words = in_one_line(without_secrets(std::move(reply.error().detail), sent_with));
    return attempted;
  }
  if (reply->status != 200) return read_error(*reply, sent_with);
  auto body = is_damaged(*reply) ? std::nullopt : parse_object(reply->body);
  if (!body) {
    attempted.verdict = Verdict::unreadable;
    attempted.words = is_damaged(*reply) ? "the answer's checksum does not match" : "the answer is not JSON";
    return attempted;
  }
  attempted.verdict = Verdict::applied;
  attempted.body = std::move(*body);
  return attempted;
}

}  // namespace holdfast::store::dynamodb
