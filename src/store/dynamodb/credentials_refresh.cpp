#include "store/dynamodb/credentials_refresh.hpp"

#include <algorithm>
#include <utility>

#include "runtime/units.hpp"
#include "store/dynamodb/surroundings.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;

/// A request needs time to arrive: what expires within this has expired.
constexpr Duration arrival = 5s;
/// Like botocore's (10 minutes at the latest, 15 wished for), drawn at random, so that a fleet that was started
/// together does not ask together.
constexpr Duration ahead_least = 10min, ahead_most = 15min;
constexpr Duration pause_first = 500ms, pause_most = 15s, pause_most_with_some = 60s;
constexpr Duration refusal_pause_first = 1s, refusal_pause_most = 60s;

bool same_keys(const Credentials& left, const Credentials& right) {
  return left.access_key_id == right.access_key_id && left.secret_access_key == right.secret_access_key &&
         left.session_token == right.session_token;
}

/// The chain, with the surroundings that it stands on.
class StandardChain final : public CredentialProvider {
 public:
  StandardChain(Loop& loop, runtime::HttpTransport& transport, std::unique_ptr<Surroundings> surroundings,
                std::string region)
      : surroundings_(std::move(surroundings)),
        chain_(provider_chain({loop, transport, *surroundings_, std::move(region)})) {}
  void ask(Handler handler) override { chain_->ask(std::move(handler)); }

 private:
  std::unique_ptr<Surroundings> surroundings_;
  std::unique_ptr<CredentialProvider> chain_;
};

}  // namespace

RefreshingCredentials::RefreshingCredentials(Loop& loop, std::unique_ptr<CredentialProvider> provider)
    : loop_(loop), provider_(std::move(provider)), refusal_pause_(refusal_pause_first) {}

RefreshingCredentials::~RefreshingCredentials() {
  for (const auto& [id, waiter] : waiters_) loop_.cancel(waiter.timer);
}

bool RefreshingCredentials::usable() const {
  return current_ && !refused_ && loop_.instant() < usable_until_;
}

void RefreshingCredentials::get(Instant deadline, Handler handler) {
  const Instant now = loop_.instant();
  const bool good = usable();
  if (!fetching_ && now >= next_fetch_ && (!good || now >= refresh_at_)) fetch();
  if (good) return answer(std::move(handler), *current_);
  if (!fetching_) return answer(std::move(handler), tl::unexpected(last_error_));  // a pause after a failure
  const std::uint64_t id = ++last_waiter_;
  const TimerId timer = loop_.call_at(deadline, [this, id] {
    const auto found = waiters_.find(id);
    Handler late = std::move(found->second.handler);
    waiters_.erase(found);
    late(fail(Code::unavailable, "AWS credentials are still being fetched"));
  });
  waiters_.emplace(id, Waiter{std::move(handler), timer});
}

void RefreshingCredentials::refused() {
  if (loop_.instant() < refusal_counts_at_) return;
  refused_ = current_.has_value();
  if (failures_ == 0) next_fetch_ = {};  // there was nothing wrong with fetching
}

void RefreshingCredentials::fetch() {
  fetching_ = true;
  // Never inside get(): what the provider knows at once would overtake the waiter.
  loop_.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) provider_->ask([this](Found found) { take(std::move(found)); });
  });
}

void RefreshingCredentials::take(Found found) {
  fetching_ = false;
  if (found.kind != Found::Kind::credentials) return failed(std::move(found.error));
  if (found.credentials.expires_at && *found.credentials.expires_at - loop_.wall() < arrival) {
    const Duration ago = loop_.wall() - *found.credentials.expires_at;
    return failed({Code::unavailable, "no AWS credentials: " + found.credentials.provider + ": what it gave " +
                                          (ago < Duration::zero() ? "expires in " : "expired before ") +
                                          runtime::describe_duration(ago) + " (by this machine's clock)"});
  }
  keep(std::move(found.credentials));
}

void RefreshingCredentials::keep(Credentials credentials) {
  const Instant now = loop_.instant();
  const bool same = current_ && same_keys(*current_, credentials);
  // The same ones after a refusal: nothing has changed there yet, so it is looked for less and less often.
  refusal_pause_ = refused_ && same ? std::min(refusal_pause_ * 2, refusal_pause_most) : refusal_pause_first;
  refusal_counts_at_ = now + refusal_pause_;
  refused_ = false;
  failures_ = 0;
  next_fetch_ = {};
  usable_until_ = refresh_at_ = Instant::max();
  if (credentials.expires_at) {
    // Years ahead are not counted in nanoseconds from now.
    const auto life = std::min<std::chrono::milliseconds>(*credentials.expires_at - loop_.wall(), 24h * 365);
    usable_until_ = now + life - arrival;
    const Duration ahead = loop_.random().between(ahead_least, ahead_most);
    refresh_at_ = now + life - std::min<Duration>(ahead, loop_.random().between(life / 3, life / 2));
    // A provider that has no newer ones yet is asked again, but not at every get().
    if (same) next_fetch_ = std::min(now + loop_.random().between(pause_most, pause_most_with_some), usable_until_);
  }
  current_ = std::move(credentials);
  answer_all(*current_);
}

void RefreshingCredentials::failed(Error error) {
  const Duration most =
      std::min(usable() ? pause_most_with_some : pause_most, pause_first * (1 << std::min(failures_, 10)));
  ++failures_;
  next_fetch_ = loop_.instant() + loop_.random().between(most / 4, most);
  last_error_ = one_line(std::move(error));
  answer_all(tl::unexpected(last_error_));
}

void RefreshingCredentials::answer(Handler handler, Result<Credentials> result) {
  loop_.post([handler = std::move(handler), result = std::move(result), alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) handler(result);
  });
}

void RefreshingCredentials::answer_all(const Result<Credentials>& result) {
  for (auto& [id, waiter] : std::exchange(waiters_, {})) {
    loop_.cancel(waiter.timer);
    answer(std::move(waiter.handler), result);
  }
}

std::unique_ptr<CredentialSource> standard_chain(Loop& loop, runtime::HttpTransport& transport,
                                                 std::unique_ptr<Surroundings> surroundings, std::string region) {
  return std::make_unique<RefreshingCredentials>(
      loop, std::make_unique<StandardChain>(loop, transport, std::move(surroundings), std::move(region)));
}

}  // namespace holdfast::store::dynamodb
