#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/dynamodb/credentials_provider.hpp"

namespace holdfast::store::dynamodb {
namespace {

class Chain final : public CredentialProvider {
 public:
  explicit Chain(const ProviderParts& parts)
      : environment_(environment_provider(parts)),
        container_(container_provider(parts)),
        metadata_(metadata_provider(parts)),
        profile_(profile_provider(parts, {*environment_, *container_, *metadata_})),
        order_{environment_.get(), profile_.get(), container_.get(), metadata_.get()} {}

  void ask(Handler handler) override {
    handler_ = std::move(handler);
    missing_.clear();
    if (!giver_) return ask_from(0);
    order_.at(*giver_)->ask([this](Found found) {
      if (found.kind != Found::Kind::nothing) return end(std::move(found));
      giver_.reset();  // it is set up no longer, or away
      ask_from(0);
    });
  }

 private:
  void ask_from(std::size_t index) {
    if (index == order_.size()) return end(none());
    order_.at(index)->ask([this, index](Found found) {
      if (found.kind == Found::Kind::nothing) {
        missing_ += (missing_.empty() ? "" : "; ") + found.error.detail;
        return ask_from(index + 1);
      }
      if (found.kind == Found::Kind::credentials) {
        giver_ = index;
        gave_ = true;
      }
      end(std::move(found));
    });
  }

  [[nodiscard]] Found none() const {
    return Found::failed({Code::not_found, "no AWS credentials (" + missing_ +
                                               "): name a profile with AWS_PROFILE, or set AWS_ACCESS_KEY_ID and "
                                               "AWS_SECRET_ACCESS_KEY, or run where a role is attached"});
  }

  void end(Found found) {
    if (found.kind == Found::Kind::failed && !found.error.detail.starts_with("no AWS credentials"))
      found.error.detail = "no AWS credentials: " + found.error.detail;
    // What has been there may well come back: whoever holds leases goes on trying.
    if (found.kind == Found::Kind::failed && gave_) found.error.code = Code::unavailable;
    std::exchange(handler_, {})(std::move(found));
  }

  std::unique_ptr<CredentialProvider> environment_, container_, metadata_, profile_;
  std::array<CredentialProvider*, 4> order_;
  std::optional<std::size_t> giver_;  // who had some last
  bool gave_ = false;                 // somebody has had some
  std::string missing_;
  Handler handler_;
};

}  // namespace

std::unique_ptr<CredentialProvider> provider_chain(ProviderParts parts) {
  return std::make_unique<Chain>(parts);
}

}  // namespace holdfast::store::dynamodb
