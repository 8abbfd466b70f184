#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::worker {

/// What one worker says to another beside the table. All that it can cause is a look, and looks are limited.
enum class Poke {
  rows,  ///< rows may have become free: look
  feed,  ///< who has read the changes for all no longer does: look, and see to the feed's row
};

/// Where a worker is to be poked, as its row says: `ADDRESS:PORT/TOKEN`. The token is drawn anew at each start and
/// stands in every poke to it: who cannot read the table cannot make one up.
struct PokeAddress {
  std::string place;
  std::string token;
  [[nodiscard]] std::string text() const { return place + "/" + token; }
};
/// Nothing where the text is none (an older worker's, or a person's).
[[nodiscard]] std::optional<PokeAddress> parse_poke_address(std::string_view text);

[[nodiscard]] std::string poke_text(Poke poke, std::string_view token);
/// Nothing where it is no poke, or not for whom has this token.
[[nodiscard]] std::optional<Poke> read_poke(std::string_view text, std::string_view token);

/// Small datagrams between workers: lost, late, doubled or made up by anybody. On the loop's thread.
class PokeNet {
 public:
  virtual ~PokeNet() = default;
  /// What others are to send to: `ADDRESS:PORT`.
  [[nodiscard]] virtual std::string place() const = 0;
  /// An empty one ends it.
  virtual void receive(std::function<void(std::string_view text)> receiver) = 0;
  /// Never waits, and says nothing of what became of it.
  virtual void send(const std::string& place, const std::string& text) = 0;
};

}  // namespace holdfast::worker
