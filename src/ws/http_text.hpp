#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::ws::http {

/// The little of HTTP's grammar (RFC 9110, 9112) that an opening handshake needs. Pure, ASCII only, no locale.

[[nodiscard]] std::string lower(std::string_view text);
/// Without spaces and tabs at both ends.
[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] bool is_token(std::string_view text);
/// Whether a comma-separated list has the token, whatever its case. `token` in lower case.
[[nodiscard]] bool has_token(std::string_view list, std::string_view token);
/// Up to `bytes_max` bytes of a text from outside, fit to be shown: control characters become spaces, and
/// all of it that is not ASCII becomes '?' where it is not UTF-8 as a whole.
[[nodiscard]] std::string harmless(std::string_view text, std::size_t bytes_max);
/// Appends the data of a chunked body as far as it is there. True where the last chunk was seen, or the
/// framing is broken: nothing more will come of it.
bool unchunk(std::string_view raw, std::string& body);

}  // namespace holdfast::ws::http
