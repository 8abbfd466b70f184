#pragma once
#include <memory>
#include <string>
#include <vector>

#include "holdfast/error.hpp"
#include "store/dynamodb/aws_files.hpp"
#include "store/dynamodb/credentials.hpp"

namespace holdfast::store::dynamodb {

/// A role that STS is asked for.
struct RoleWish {
  std::string role_arn;
  std::string session_name;  ///< empty: one of ours
  std::string external_id;   ///< empty: none
  int duration_s = 0;        ///< 0: the role's
  std::string token_file;    ///< with a web identity: where its token is
};

/// What the files, and the variables for web identities, ask for.
struct CredentialPlan {
  enum class Kind {
    nothing,       ///< `error` says what is missing
    failed,        ///< `error` says what is wrong
    keys,          ///< `keys` as they stand
    process,       ///< what `command` prints
    web_identity,  ///< AssumeRoleWithWebIdentity with `role`
    role,          ///< AssumeRole with `role`, signed with what `source` gives
    environment,   ///< the environment's keys: as a source only, and so are the next two
    container,
    metadata,
  };
  Kind kind = Kind::nothing;
  Error error;
  std::string from;  ///< for people: "profile dev (/root/.aws/credentials)"
  Credentials keys;
  std::vector<std::string> command;
  RoleWish role;
  std::shared_ptr<const CredentialPlan> source;
};

/// Decides as botocore does (create_credential_resolver in its credentials.py, "Configuring credentials" in boto3's
/// guide): the profile's role with a source; a web identity, of the environment or the profile; the profile's keys in
/// the credentials file; its credential_process; its keys in the config file.
[[nodiscard]] CredentialPlan plan_credentials(const VariableOf& variable, const AwsFiles& files);

}  // namespace holdfast::store::dynamodb
