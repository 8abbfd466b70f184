#pragma once
#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "cli/coordination.hpp"
#include "coord/available.hpp"

// What a command says while the store is away (docs/modes.md): that it is, or that it has accepted provisionally.
namespace holdfast::cli {

struct ModeSettings {
  std::string mode = "consistent", journal = "holdfast.journal", ticket;
  Duration max_age = std::chrono::hours(24);
  std::int64_t max_provisional = 1000;
};
/// `--mode` and what belongs to it. `same_as`: an option that names the operation as well as --ticket does.
void add_mode(CLI::App& app, ModeSettings& settings, const std::string& same_as = {});
void add_max_age(CLI::App& app, Duration& target);
void add_max_provisional(CLI::App& app, std::int64_t& target);
/// --ticket: never from the environment, where a compensation finds the ticket that it makes good for.
void add_ticket(CLI::App& app, std::string& target, const std::string& description);
[[nodiscard]] Result<bool> is_available(const ModeSettings& settings);
/// The ticket, by whichever option it was given.
[[nodiscard]] Result<std::string> ticket_of(const ModeSettings& settings, const std::string& option,
                                            const std::string& given);
/// For how long the store remembers an operation that only it was asked for, `usual` at least: what has a --ticket
/// may be in a journal as well, and a journal's tickets are replayed for so long.
[[nodiscard]] Duration remembered_by(const ModeSettings& settings, Duration usual);
/// The lines about exit codes, besides call_exit_codes().
[[nodiscard]] std::string mode_exit_codes();

/// Accepts it, and tells that it did: what a caller is told can not be taken for a committed result.
[[nodiscard]] Result<int> tell_provisional(bool json, const Provisional& provisional);

class Accepting {
 public:
  [[nodiscard]] static Result<Accepting> begin(const CallSettings& call, const ModeSettings& mode);

  /// The store first, then the journal. `submit` asks Available for it, `tell` tells what was committed.
  template <class T>
  [[nodiscard]] Result<int> run(const Wish& wish, const std::string& ticket,
                                const std::function<void(coord::Available&, coord::Available::Handler<T>)>& submit,
                                const std::function<Result<int>(const T&)>& tell) {
    if (!here_) return without_store(wish, ticket);
    coord::Available available(*journal_, here_->session().store(), here_->session().loop(), options_);
    const auto accepted = here_->await<Accepted<T>>([&](auto handler) { submit(available, std::move(handler)); });
    if (!accepted) return accepted.error();
    if (const auto* provisional = std::get_if<Provisional>(&*accepted)) {
      return tell_provisional(json_, *provisional);
    }
    return tell(std::get<Committed<T>>(*accepted).value);
  }

 private:
  Accepting() = default;
  [[nodiscard]] Result<int> without_store(const Wish& wish, const std::string& ticket);

  bool json_ = false;
  coord::AvailableOptions options_;
  std::unique_ptr<coord::Journal> journal_;
  std::unique_ptr<Coordination> here_;  // none: the store is not there at all
  std::string why_;
};

}  // namespace holdfast::cli
