#include "store/dynamodb/credentials_plan.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "store/dynamodb/credentials_found.hpp"

namespace holdfast::store::dynamodb {
namespace {

using Kind = CredentialPlan::Kind;

CredentialPlan failed(std::string what) {
  CredentialPlan plan;
  plan.kind = Kind::failed;
  plan.error = Error(Code::usage, std::move(what));
  return plan;
}

CredentialPlan nothing(std::string why) {
  CredentialPlan plan;
  plan.error = Error(Code::not_found, std::move(why));
  return plan;
}

/// What the AWS CLI can do and we cannot.
std::string through_the_cli(const std::string& profile) {
  return "let the AWS CLI do it: a profile with credential_process = aws configure export-credentials --profile " +
         profile + ", named by AWS_PROFILE";
}

bool is_session_name(std::string_view text) {
  const auto good = [](char sign) {
    return (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || (sign >= '0' && sign <= '9') ||
           std::string_view("_+=,.@-").find(sign) != std::string_view::npos;
  };
  return text.size() >= 2 && text.size() <= 64 && std::ranges::all_of(text, good);
}

/// Names of STS that are wrong in a way that its own answer would not tell clearly.
std::optional<std::string> wrong_with_role(const RoleWish& role) {
  if (!role.role_arn.starts_with("arn:")) return "the role's ARN does not begin with arn:";
  if (!role.session_name.empty() && !is_session_name(role.session_name))
    return "the session name is not of 2 to 64 letters, digits and _+=,.@-";
  return std::nullopt;
}

class Planner {
 public:
  Planner(const VariableOf& variable, const AwsFiles& files) : variable_(variable), files_(files) {}

  CredentialPlan plan() {
    const std::string& name = files_.places.profile;
    if (asks_for_role(name)) return plan_role(name);
    CredentialPlan identity = plan_identity(name, variable_);
    if (identity.kind != Kind::nothing) return identity;
    CredentialPlan keys = plan_keys(name);
    if (keys.kind == Kind::nothing) keys.error.detail = identity.error.detail + "; " + keys.error.detail;
    return keys;
  }

 private:
  [[nodiscard]] const AwsSection& profile(const std::string& name) const {
    static const AwsSection none;
    const auto found = files_.found.profiles.find(name);
    return found == files_.found.profiles.end() ? none : found->second;
  }
  [[nodiscard]] std::optional<std::string> setting(const std::string& name, const char* what) const {
    return text_of(profile(name), what);
  }
  [[nodiscard]] bool asks_for_role(const std::string& name) const {
    return setting(name, "role_arn") && !setting(name, "web_identity_token_file");
  }
  [[nodiscard]] bool has_keys(const std::string& name) const {
    return setting(name, "aws_access_key_id") && setting(name, "aws_secret_access_key");
  }

  /// A web identity; `variable` is asked before the profile, setting by setting.
  [[nodiscard]] CredentialPlan plan_identity(const std::string& name, const VariableOf& variable) const;
  /// Keys, or a process that prints some.
  [[nodiscard]] CredentialPlan plan_keys(const std::string& name) const;
  [[nodiscard]] std::optional<CredentialPlan> keys_in(const std::map<std::string, AwsSection>& sections,
                                                      const std::string& name, const std::string& path) const;
  CredentialPlan plan_role(const std::string& name);
  CredentialPlan plan_source(const std::string& name);
  CredentialPlan plan_source_profile(const std::string& name, const std::string& source);

  const VariableOf& variable_;
  const AwsFiles& files_;
  std::vector<std::string> visited_;  // profiles that lead to each other
};

CredentialPlan Planner::plan_identity(const std::string& name, const VariableOf& variable) const {
  const auto find = [&](const char* variable_name, const char* what) {
    auto value = variable(variable_name);
    return value ? value : setting(name, what);
  };
  const auto token_file = find("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
  if (!token_file) return nothing("web identity: AWS_WEB_IDENTITY_TOKEN_FILE is not set");
  CredentialPlan plan;
  plan.kind = Kind::web_identity;
  plan.from = variable("AWS_WEB_IDENTITY_TOKEN_FILE") ? "web identity" : "web identity of profile " + name;
  plan.role.token_file = *token_file;
  plan.role.role_arn = find("AWS_ROLE_ARN", "role_arn").value_or("");
  plan.role.session_name = find("AWS_ROLE_SESSION_NAME", "role_session_name").value_or("");
  if (plan.role.role_arn.empty())
    return failed(plan.from + ": there is a token file, but no role: set AWS_ROLE_ARN, or role_arn in the profile");
  if (const auto wrong = wrong_with_role(plan.role)) return failed(plan.from + ": " + *wrong);
  return plan;
}

std::optional<CredentialPlan> Planner::keys_in(const std::map<std::string, AwsSection>& sections,
                                               const std::string& name, const std::string& path) const {
  const auto found = sections.find(name);
  if (found == sections.end()) return std::nullopt;
  const auto id = text_of(found->second, "aws_access_key_id");
  if (!id) return std::nullopt;
  CredentialPlan plan;
  plan.kind = Kind::keys;
  plan.from = "profile " + name + " (" + path + ")";
  plan.keys.access_key_id = *id;
  const auto secret = text_of(found->second, "aws_secret_access_key");
  if (!secret) return failed(plan.from + ": it has aws_access_key_id, but no aws_secret_access_key");
  plan.keys.secret_access_key = *secret;
  auto token = text_of(found->second, "aws_session_token");
  if (!token) token = text_of(found->second, "aws_security_token");
  plan.keys.session_token = token.value_or("");
  plan.keys.provider = plan.from;
  if (const auto wrong = wrong_with(plan.keys)) return failed(plan.from + ": " + wrong->detail);
  return plan;
}

CredentialPlan Planner::plan_keys(const std::string& name) const {
  const AwsPlaces& places = files_.places;
  if (auto keys = keys_in(files_.found.credentials, name, places.credentials)) return *std::move(keys);
  if (const auto process = setting(name, "credential_process")) {
    CredentialPlan plan;
    plan.kind = Kind::process;
    plan.from = "credential_process of profile " + name;
    auto command = split_as_shell(*process);
    if (!command || command->empty() || command->front().empty())
      return failed(plan.from + ": it is no command line (is a quote not closed?)");
    plan.command = *std::move(command);
    return plan;
  }
  if (auto keys = keys_in(files_.found.config, name, places.config)) return *std::move(keys);
  for (const char* foreign : {"sso_session", "sso_start_url", "sso_account_id", "login_session"})
    if (setting(name, foreign))
      return failed("profile " + name + " signs in with " + foreign + ", which Holdfast does not do; " +
                    through_the_cli(name));
  if (!files_.found.profiles.contains(name))
    return nothing(
        "profile " + name + ": " +
        (files_.missing.empty() ? "neither in " + places.config + " nor in " + places.credentials : files_.missing));
  return nothing("profile " + name + ": it has no keys and no credential_process");
}

CredentialPlan Planner::plan_role(const std::string& name) {
  visited_.push_back(name);
  CredentialPlan plan;
  plan.kind = Kind::role;
  plan.from = "role of profile " + name;
  plan.role.role_arn = setting(name, "role_arn").value_or("");
  plan.role.session_name = setting(name, "role_session_name").value_or("");
  plan.role.external_id = setting(name, "external_id").value_or("");
  if (const auto text = setting(name, "duration_seconds")) {
    const char* last = text->data() + text->size();
    const auto [end, error] = std::from_chars(text->data(), last, plan.role.duration_s);
    if (error != std::errc() || end != last || plan.role.duration_s < 900 || plan.role.duration_s > 43200)
      return failed(plan.from + ": duration_seconds is no number from 900 to 43200");
  }
  if (const auto wrong = wrong_with_role(plan.role)) return failed(plan.from + ": " + *wrong);
  if (setting(name, "mfa_serial"))
    return failed(plan.from + ": it asks for a code of a device (mfa_serial), and nobody is here to type it; " +
                  through_the_cli(name));
  CredentialPlan source = plan_source(name);
  if (source.kind == Kind::failed) return source;
  if (source.kind == Kind::nothing) return failed(plan.from + ": its source has none: " + source.error.detail);
  plan.source = std::make_shared<const CredentialPlan>(std::move(source));
  return plan;
}

CredentialPlan Planner::plan_source(const std::string& name) {
  const auto profile_named = setting(name, "source_profile");
  const auto source_named = setting(name, "credential_source");
  const std::string from = "role of profile " + name;
  if (profile_named.has_value() == source_named.has_value())
    return failed(from + ": say whose keys ask for it, with one of source_profile and credential_source");
  if (profile_named) return plan_source_profile(name, *profile_named);
  CredentialPlan plan;
  if (*source_named == "Environment") {
    plan.kind = Kind::environment;
  } else if (*source_named == "EcsContainer") {
    plan.kind = Kind::container;
  } else if (*source_named == "Ec2InstanceMetadata") {
    plan.kind = Kind::metadata;
  } else {
    return failed(from + ": credential_source is none of Environment, EcsContainer, Ec2InstanceMetadata");
  }
  return plan;
}

CredentialPlan Planner::plan_source_profile(const std::string& name, const std::string& source) {
  if (!files_.found.profiles.contains(source))
    return failed("role of profile " + name + ": its source_profile " + source + " is in neither file");
  // A profile may be its own source, or close the circle, only where it has keys that end it.
  if (std::ranges::find(visited_, source) != visited_.end() && (source != name || !has_keys(source)))
    return failed("role of profile " + name + ": its source_profile leads in a circle, by way of " + source);
  if (asks_for_role(source) && !has_keys(source)) return plan_role(source);
  CredentialPlan identity = plan_identity(source, [](const std::string&) { return std::nullopt; });
  return identity.kind == Kind::nothing ? plan_keys(source) : identity;
}

}  // namespace

CredentialPlan plan_credentials(const VariableOf& variable, const AwsFiles& files) {
  return Planner(variable, files).plan();
}

}  // namespace holdfast::store::dynamodb
