#pragma once
#include <map>
#include <memory>
#include <optional>

#include "holdfast/loop.hpp"
#include "store/dynamodb/credentials.hpp"
#include "store/dynamodb/credentials_provider.hpp"

namespace holdfast::store::dynamodb {

/// Keeps what a provider gives and has it fetched anew in time: standard_chain() around its chain. Timers run only
/// while somebody waits. On the loop's thread.
class RefreshingCredentials final : public CredentialSource {
 public:
  RefreshingCredentials(Loop& loop, std::unique_ptr<CredentialProvider> provider);
  ~RefreshingCredentials() override;
  RefreshingCredentials(const RefreshingCredentials&) = delete;
  RefreshingCredentials& operator=(const RefreshingCredentials&) = delete;

  void get(Instant deadline, Handler handler) override;
  void refused() override;

 private:
  struct Waiter {
    Handler handler;
    TimerId timer;
  };

  [[nodiscard]] bool usable() const;
  void fetch();
  void take(Found found);
  void keep(Credentials credentials);
  void failed(Error error);
  void answer(Handler handler, Result<Credentials> result);
  void answer_all(const Result<Credentials>& result);

  Loop& loop_;
  std::unique_ptr<CredentialProvider> provider_;
  std::optional<Credentials> current_;
  Instant usable_until_{};       // of current_, by the clock that nobody sets
  Instant refresh_at_{};         // from then on get() has others fetched
  bool refused_ = false;         // current_ is no longer accepted
  Instant refusal_counts_at_{};  // refusals before this are not heeded
  Duration refusal_pause_{};
  bool fetching_ = false;
  int failures_ = 0;  // in a row
  Instant next_fetch_{};
  Error last_error_;
  std::map<std::uint64_t, Waiter> waiters_;
  std::uint64_t last_waiter_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace holdfast::store::dynamodb
