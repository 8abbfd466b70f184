#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"
#include "runtime/http.hpp"
#include "store/dynamodb/credentials.hpp"
#include "store/dynamodb/credentials_plan.hpp"

namespace holdfast::store::dynamodb {

/// AWS's Security Token Service, its query protocol (version 2011-06-15).

/// AssumeRoleWithWebIdentity, unsigned.
[[nodiscard]] runtime::HttpRequest identity_request(const std::string& url, const RoleWish& role,
                                                    const std::string& session_name, const std::string& token);
/// AssumeRole; the caller signs it.
[[nodiscard]] runtime::HttpRequest role_request(const std::string& url, const RoleWish& role,
                                                const std::string& session_name);

/// Credentials out of an answer of status 200. Code::corrupt says what is missing.
[[nodiscard]] Result<Credentials> credentials_from_sts(std::string_view xml);

/// Why there is no such answer: Code::unavailable where asking again can help. `secrets` are blotted out of STS's
/// words.
[[nodiscard]] Error error_of_sts(const runtime::HttpReply& reply, const std::vector<std::string>& secrets);

/// The text of the first element of that name, its entities replaced; empty where there is none. For documents that
/// are as plain as those of STS: no attributes, no CDATA.
[[nodiscard]] std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace holdfast::store::dynamodb
