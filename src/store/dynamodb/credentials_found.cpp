#include "store/dynamodb/credentials_found.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace holdfast::store::dynamodb {
namespace {

constexpr std::size_t key_bytes_max = 1024;
constexpr std::size_t token_bytes_max = std::size_t{32} << 10U;

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char sign) { return sign > ' ' && sign <= '~'; });
}

std::optional<Error> wrong_with_field(std::string_view name, std::string_view value, std::size_t bytes_max) {
  const std::string what(name);
  if (value.size() > bytes_max) return Error(Code::corrupt, what + " is longer than any");
  if (!is_visible(value))
    return Error(Code::corrupt,
                 what + " has a blank, a line break or another character in it that none has: look at its end");
  return std::nullopt;
}

/// Takes digits and signs off a text, one after the other.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  /// A number of exactly so many digits.
  int number(std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (text_.empty() || text_.front() < '0' || text_.front() > '9') {
        good_ = false;
        return 0;
      }
      value = value * 10 + (text_.front() - '0');
      text_.remove_prefix(1);
    }
    return value;
  }
  /// Which of these it was; 0: none.
  char sign(std::string_view allowed) {
    if (text_.empty() || allowed.find(text_.front()) == std::string_view::npos) return 0;
    const char found = text_.front();
    text_.remove_prefix(1);
    return found;
  }
  void need(std::string_view allowed) { good_ = sign(allowed) != 0 && good_; }
  [[nodiscard]] bool digit_is_next() const { return !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
  bool good_ = true;
};

std::chrono::milliseconds read_fraction(Reader& reader) {
  int milliseconds = 0;
  int scale = 100;
  if (reader.sign(".,") == 0) return {};
  milliseconds += scale * reader.number(1);
  while (reader.good() && reader.digit_is_next()) {
    scale /= 10;
    milliseconds += scale * reader.number(1);
  }
  return std::chrono::milliseconds(milliseconds);
}

std::optional<std::chrono::minutes> read_zone(Reader& reader) {
  if (reader.sign("Zz") != 0) return std::chrono::minutes(0);
  const char direction = reader.sign("+-");
  if (direction == 0) return std::nullopt;
  const int hours = reader.number(2);
  reader.sign(":");
  const int minutes = reader.number(2);
  if (hours > 23 || minutes > 59) return std::nullopt;
  const auto offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return direction == '-' ? -offset : offset;
}

std::optional<std::string> text_at(const boost::json::object& object, std::string_view name) {
  const boost::json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string() || value->get_string().empty()) return std::nullopt;
  return std::string(value->get_string());
}

}  // namespace

std::optional<Error> wrong_with(const Credentials& credentials) {
  if (credentials.access_key_id.empty()) return Error(Code::corrupt, "the access key's id is empty");
  if (credentials.secret_access_key.empty()) return Error(Code::corrupt, "the secret access key is empty");
  if (auto wrong = wrong_with_field("the access key's id", credentials.access_key_id, key_bytes_max)) return wrong;
  if (auto wrong = wrong_with_field("the secret access key", credentials.secret_access_key, key_bytes_max))
    return wrong;
  return wrong_with_field("the session token", credentials.session_token, token_bytes_max);
}

std::optional<WallTime> parse_iso_time(std::string_view text) {
  Reader reader(text);
  const int year = reader.number(4);
  reader.need("-");
  const int month = reader.number(2);
  reader.need("-");
  const int day = reader.number(2);
  reader.need("Tt ");
  const int hours = reader.number(2);
  reader.need(":");
  const int minutes = reader.number(2);
  reader.need(":");
  const int seconds = reader.number(2);
  const std::chrono::milliseconds fraction = read_fraction(reader);
  const std::optional<std::chrono::minutes> zone = read_zone(reader);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!reader.good() || !reader.at_end() || !zone || !date.ok() || year < 1970) return std::nullopt;
  if (hours > 23 || minutes > 59 || seconds > 60) return std::nullopt;
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hours) + std::chrono::minutes(minutes) +
         std::chrono::seconds(seconds) + fraction - *zone;
}

Result<Credentials> credentials_from_json(std::string_view json, const AnswerForm& form) {
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse({json.data(), json.size()}, error);
  if (error || !value.is_object()) return fail(Code::corrupt, "the answer is no JSON object");
  const boost::json::object& object = value.get_object();
  if (form.has_version) {
    const boost::json::value* version = object.if_contains("Version");
    if (version == nullptr || !version->is_number() || version->to_number<double>(error) != 1)
      return fail(Code::corrupt, "the answer has no \"Version\": 1, the only one known");
  }
  Credentials credentials;
  const auto take = [&object](const std::string& name, std::string& into) {
    if (auto text = text_at(object, name)) into = *std::move(text);
    return !into.empty();
  };
  if (!take("AccessKeyId", credentials.access_key_id)) return fail(Code::corrupt, "the answer has no AccessKeyId");
  if (!take("SecretAccessKey", credentials.secret_access_key))
    return fail(Code::corrupt, "the answer has no SecretAccessKey");
  if (!take(form.token_name, credentials.session_token) && form.token_is_needed)
    return fail(Code::corrupt, "the answer has no " + form.token_name);
  const boost::json::value* expiry = object.if_contains("Expiration");
  if (expiry != nullptr && !expiry->is_null()) {
    credentials.expires_at =
        expiry->is_string() ? parse_iso_time(std::string_view(expiry->get_string())) : std::nullopt;
    if (!credentials.expires_at)
      return fail(Code::corrupt, "the answer's Expiration is no time like 2026-11-30T05:42:00Z");
  } else if (form.expiry_is_needed) {
    return fail(Code::corrupt, "the answer has no Expiration");
  }
  if (const auto wrong = wrong_with(credentials)) return tl::unexpected(*wrong);
  return credentials;
}

void correct_expiry(Credentials& credentials, const runtime::HttpAnswer& answer, WallTime now) {
  const std::string* date = answer.header("Date");
  if (date == nullptr || !credentials.expires_at) return;
  if (const auto theirs = runtime::parse_http_date(*date)) *credentials.expires_at -= *theirs - now;
}

std::string quotable(std::string_view text, const std::vector<std::string>& secrets) {
  std::string result(text);
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    for (std::size_t at = result.find(secret); at != std::string::npos; at = result.find(secret, at + 3))
      result.replace(at, secret.size(), "***");
  }
  for (char& sign : result)
    if (sign < ' ' || sign > '~') sign = ' ';
  constexpr std::size_t longest = 200;
  if (result.size() > longest) result = result.substr(0, longest) + "...";
  return result;
}

Error one_line(Error error) {
  for (char& sign : error.detail)
    if (static_cast<unsigned char>(sign) < ' ' || sign == '\x7f') sign = ' ';
  return error;
}

}  // namespace holdfast::store::dynamodb
