#include "worker/poke.hpp"

#include <utility>

namespace holdfast::worker {
namespace {

constexpr std::string_view rows_prefix = "holdfast rows ";
constexpr std::string_view feed_prefix = "holdfast feed ";
constexpr std::size_t token_bytes_min = 16;

}  // namespace

std::optional<PokeAddress> parse_poke_address(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || text.size() - slash - 1 < token_bytes_min) return std::nullopt;
  return PokeAddress{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::string poke_text(Poke poke, std::string_view token) {
  std::string text(poke == Poke::rows ? rows_prefix : feed_prefix);
  return text.append(token);
}

std::optional<Poke> read_poke(std::string_view text, std::string_view token) {
  if (token.size() < token_bytes_min) return std::nullopt;
  for (const auto& [prefix, poke] : {std::pair(rows_prefix, Poke::rows), std::pair(feed_prefix, Poke::feed)}) {
    if (text.starts_with(prefix) && text.substr(prefix.size()) == token) return poke;
  }
  return std::nullopt;
}

}  // namespace holdfast::worker
