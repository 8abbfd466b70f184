#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/dynamodb/credentials_plan.hpp"
#include "store/dynamodb/credentials_provider.hpp"
#include "store/dynamodb/credentials_question.hpp"
#include "store/dynamodb/credentials_sts.hpp"
#include "store/dynamodb/endpoint.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;

constexpr HttpQuestion::Patience patience{.tries = 3, .each = 5s, .pause = 1s, .tries_unanswered = 2};
/// Those of botocore wait without end. This is for programs that ask a server and perhaps refresh a token.
constexpr Duration process_max = 20s;

class ProfileProvider final : public CredentialProvider {
 public:
  ProfileProvider(ProviderParts parts, SourceProviders sources)
      : parts_(std::move(parts)), sources_(sources), question_(parts_.loop, parts_.transport) {}

  void ask(Handler handler) override;

 private:
  using Plan = std::shared_ptr<const CredentialPlan>;
  using Kind = CredentialPlan::Kind;

  /// What the background found in the files.
  struct Look {
    Plan plan;
    Result<Endpoint> sts;
  };

  void carry_out(const Plan& plan, Handler handler);
  void run(const Plan& plan, Handler handler);
  void ask_identity(const Plan& plan, Handler handler);
  void ask_role(const Plan& plan, const Found& source, Handler handler);
  void ask_sts(const Plan& plan, runtime::HttpRequest request, std::vector<std::string> secrets, Handler handler);
  [[nodiscard]] std::string session_name(const CredentialPlan& plan) const;
  [[nodiscard]] static Found failed(const CredentialPlan& plan, const Error& error) {
    return Found::failed({error.code, plan.from + ": " + error.detail});
  }
  /// Runs `work` aside and hands what it gives to `done` on the loop, if this is still there then.
  template <class T>
  void aside(std::function<T()> work, std::function<void(T)> done) {
    const auto given = std::make_shared<std::optional<T>>();
    parts_.surroundings.in_background([given, work = std::move(work)] { *given = work(); },
                                      [given, done = std::move(done), alive = std::weak_ptr<int>(alive_)] {
                                        if (!alive.expired()) done(std::move(**given));
                                      });
  }

  ProviderParts parts_;
  SourceProviders sources_;
  HttpQuestion question_;
  std::string sts_url_, sts_region_;
  Error sts_error_;  // where there is no URL
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

void ProfileProvider::ask(Handler handler) {
  Surroundings* const surroundings = &parts_.surroundings;
  aside<Look>(
      [surroundings, region = parts_.region] {
        const VariableOf variable = [surroundings](const std::string& name) { return surroundings->variable(name); };
        const Result<AwsFiles> files = read_aws_files(
            variable, [surroundings](const std::string& path) { return surroundings->read_file(path); });
        CredentialPlan plan;
        if (!files) {
          plan.kind = Kind::failed;
          plan.error = files.error();
          return Look{std::make_shared<const CredentialPlan>(std::move(plan)), tl::unexpected(files.error())};
        }
        plan = plan_credentials(variable, *files);
        return Look{std::make_shared<const CredentialPlan>(std::move(plan)),
                    find_endpoint("sts", {region, ""}, variable, *files)};
      },
      [this, handler = std::move(handler)](Look look) {
        sts_url_ = look.sts ? look.sts->url : "";
        sts_region_ = look.sts ? look.sts->region : "";
        sts_error_ = look.sts ? Error() : look.sts.error();
        carry_out(look.plan, handler);
      });
}

void ProfileProvider::carry_out(const Plan& plan, Handler handler) {
  switch (plan->kind) {
    case Kind::nothing:
      return handler({Found::Kind::nothing, {}, plan->error});
    case Kind::failed:
      return handler(Found::failed(plan->error));
    case Kind::keys:
      return handler(Found::have(plan->keys));
    case Kind::process:
      return run(plan, std::move(handler));
    case Kind::web_identity:
      return ask_identity(plan, std::move(handler));
    case Kind::role:
      return carry_out(plan->source, [this, plan, handler = std::move(handler)](const Found& source) {
        ask_role(plan, source, handler);
      });
    case Kind::environment:
      return sources_.environment.ask(std::move(handler));
    case Kind::container:
      return sources_.container.ask(std::move(handler));
    case Kind::metadata:
      return sources_.metadata.ask(std::move(handler));
  }
}

void ProfileProvider::run(const Plan& plan, Handler handler) {
  aside<Result<std::string>>(
      [surroundings = &parts_.surroundings, plan] { return surroundings->run(plan->command, process_max); },
      [plan, handler = std::move(handler)](const Result<std::string>& output) {
        if (!output) return handler(failed(*plan, output.error()));
        AnswerForm form;
        form.token_name = "SessionToken";
        form.token_is_needed = false;
        form.expiry_is_needed = false;
        form.has_version = true;
        Result<Credentials> credentials = credentials_from_json(*output, form);
        if (!credentials) return handler(failed(*plan, credentials.error()));
        credentials->provider = plan->from;
        handler(Found::have(*std::move(credentials)));
      });
}

void ProfileProvider::ask_identity(const Plan& plan, Handler handler) {
  aside<Result<std::string>>(
      [surroundings = &parts_.surroundings, plan] { return surroundings->read_file(plan->role.token_file); },
      [this, plan, handler = std::move(handler)](const Result<std::string>& content) {
        if (!content) return handler(failed(*plan, {Code::unavailable, content.error().detail}));
        const std::size_t first = content->find_first_not_of(" \t\r\n");
        if (first == std::string::npos)
          return handler(failed(*plan, {Code::unavailable, "the token file " + plan->role.token_file + " is empty"}));
        const std::string token = content->substr(first, content->find_last_not_of(" \t\r\n") + 1 - first);
        if (token.find_first_of(" \t\r\n") != std::string::npos)
          return handler(failed(*plan, {Code::corrupt, "the token file " + plan->role.token_file +
                                                           " holds more than a token (a line break, a blank?)"}));
        ask_sts(plan, identity_request(sts_url_, plan->role, session_name(*plan), token), {token}, handler);
      });
}

void ProfileProvider::ask_role(const Plan& plan, const Found& source, Handler handler) {
  if (source.kind != Found::Kind::credentials)
    return handler(failed(*plan, {source.kind == Found::Kind::nothing ? Code::usage : source.error.code,
                                  "its source has none: " + source.error.detail}));
  runtime::HttpRequest request = role_request(sts_url_, plan->role, session_name(*plan));
  const Credentials& keys = source.credentials;
  request.signing =
      runtime::AwsSigning{keys.access_key_id, keys.secret_access_key, keys.session_token, sts_region_, "sts", {}};
  ask_sts(plan, std::move(request), {keys.secret_access_key, keys.session_token}, std::move(handler));
}

void ProfileProvider::ask_sts(const Plan& plan, runtime::HttpRequest request, std::vector<std::string> secrets,
                              Handler handler) {
  if (sts_url_.empty()) return handler(failed(*plan, sts_error_));
  question_.ask(
      std::move(request), patience,
      [this, plan, secrets = std::move(secrets), handler = std::move(handler)](const runtime::HttpReply& reply) {
        if (!reply || reply->status != 200) return handler(failed(*plan, error_of_sts(reply, secrets)));
        Result<Credentials> credentials = credentials_from_sts(reply->body);
        if (!credentials) return handler(failed(*plan, credentials.error()));
        credentials->provider = plan->from;
        correct_expiry(*credentials, *reply, parts_.loop.wall());
        handler(Found::have(*std::move(credentials)));
      });
}

/// Shows in AWS's logs who it was.
std::string ProfileProvider::session_name(const CredentialPlan& plan) const {
  if (!plan.role.session_name.empty()) return plan.role.session_name;
  return "holdfast-" + std::to_string(parts_.loop.wall().time_since_epoch().count());
}

}  // namespace

std::unique_ptr<CredentialProvider> profile_provider(ProviderParts parts, SourceProviders sources) {
  return std::make_unique<ProfileProvider>(std::move(parts), sources);
}

}  // namespace holdfast::store::dynamodb
