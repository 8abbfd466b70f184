#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"
#include "runtime/http.hpp"
#include "store/dynamodb/credentials.hpp"

namespace holdfast::store::dynamodb {

/// What a provider has. Where it is set up but fails, the chain stops: what comes later in it may be somebody else.
struct Found {
  enum class Kind {
    credentials,
    nothing,  ///< it is not set up; the error's detail says what is missing
    failed,   ///< it is set up and does not work
  };
  Kind kind = Kind::nothing;
  Credentials credentials;
  Error error;

  [[nodiscard]] static Found have(Credentials credentials) { return {Kind::credentials, std::move(credentials), {}}; }
  [[nodiscard]] static Found nothing(std::string why) {
    return {Kind::nothing, {}, {Code::not_found, std::move(why)}};
  }
  [[nodiscard]] static Found failed(Error error) { return {Kind::failed, {}, std::move(error)}; }
};

/// What is wrong with the keys, if anything: empty, too long, or a character in it that no key has and that would
/// split a header. Names the field and shows nothing of it.
[[nodiscard]] std::optional<Error> wrong_with(const Credentials& credentials);

/// A moment as AWS writes it, "2026-11-30T05:42:00Z", with a fraction or an offset instead of Z if need be. Nothing
/// where it is no such text.
[[nodiscard]] std::optional<WallTime> parse_iso_time(std::string_view text);

/// How providers call the parts of their JSON.
struct AnswerForm {
  std::string token_name = "Token";
  bool token_is_needed = true;
  bool expiry_is_needed = true;
  bool has_version = false;  ///< "Version": 1
};
/// Credentials out of a provider's JSON. Code::corrupt says what is wrong and shows nothing of it.
[[nodiscard]] Result<Credentials> credentials_from_json(std::string_view json, const AnswerForm& form);

/// The expiry by this machine's clock, which may be wrong: an answer's Date header says what the other side's clock
/// showed at `now`.
void correct_expiry(Credentials& credentials, const runtime::HttpAnswer& answer, WallTime now);

/// Somebody else's words for one of our lines: printable ASCII, at most 200 characters, each of the secrets blotted
/// out.
[[nodiscard]] std::string quotable(std::string_view text, const std::vector<std::string>& secrets);

/// The error with its words on one line: values of files that it names may go over several.
[[nodiscard]] Error one_line(Error error);

}  // namespace holdfast::store::dynamodb
