#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "runtime/http.hpp"
#include "store/dynamodb/credentials.hpp"
#include "store/dynamodb/retry.hpp"

namespace holdfast::store::dynamodb {

/// One attempt, read.
struct Attempted {
  Verdict verdict = Verdict::uncertain;
  std::string type;          ///< of an error, without its prefix; empty where the server gave none
  std::string words;         ///< for people: what went wrong; one line
  boost::json::object body;  ///< the answer, or the error as the server told it
};

/// Reads what came back: checks the checksum (X-Amz-Crc32) and that it is JSON, and judges it. Of the secrets in
/// `sent_with` nothing is left in words and messages, even where the server repeats them (a refused signature's
/// message quotes the request's headers, the session token among them). Items are data, and stay as they are.
[[nodiscard]] Attempted read_attempt(runtime::HttpReply reply, const Credentials& sent_with);

/// The text with every occurrence of the secret access key and the session token blotted out.
[[nodiscard]] std::string without_secrets(std::string text, const Credentials& credentials);

}  // namespace holdfast::store::dynamodb
