#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/error.hpp"

namespace holdfast::store::dynamodb {

/// One value of a section, or the block that is indented below an empty one:
///
///     region = eu-west-1
///     dynamodb =
///       endpoint_url = http://localhost:8000
struct AwsSetting {
  std::string text;                          ///< empty where there is a block
  std::map<std::string, std::string> block;  ///< names as they are written
  bool operator==(const AwsSetting&) const = default;
};
/// By name, in lower case.
using AwsSection = std::map<std::string, AwsSetting>;
/// In the file's order, each with what is between its brackets, as it is written.
using AwsSections = std::vector<std::pair<std::string, AwsSection>>;

/// Reads one of AWS's files as botocore does (Python's RawConfigParser and botocore.configloader, which the AWS CLI
/// and boto3 stand on), quirks included: `#` and `;` begin a comment at the start of a line only; `=` or `:`,
/// whichever comes first, ends a name; a line that is indented deeper than the name above belongs to its value; what
/// stands twice is an error; `[DEFAULT]` is for all sections. A byte order mark is skipped.
///
/// Code::usage names the line and what is wrong with it, and nothing that is written there: it may be a secret.
[[nodiscard]] Result<AwsSections> parse_aws_file(std::string_view text);

/// Both files, sorted out. A profile is what `[default]` and `[profile NAME]` of the config file and `[NAME]` of the
/// credentials file say together; where both say something, the credentials file counts.
struct AwsProfiles {
  std::map<std::string, AwsSection> profiles;
  std::map<std::string, AwsSection> services;     ///< `[services NAME]`
  std::map<std::string, AwsSection> credentials;  ///< the credentials file alone
  std::map<std::string, AwsSection> config;       ///< the config file's profiles alone
};
[[nodiscard]] AwsProfiles sort_out(const AwsSections& config, const AwsSections& credentials);

/// The text of a setting; nothing where it is missing, empty, or a block.
[[nodiscard]] std::optional<std::string> text_of(const AwsSection& section, const std::string& name);

/// Splits as a POSIX shell does (quotes, backslashes), without replacing anything: Python's shlex.split. Nothing
/// where a quote is not closed or a backslash is the last character.
[[nodiscard]] std::optional<std::vector<std::string>> split_as_shell(std::string_view text);

/// Which profile, and which files: by the environment, or the usual ones.
struct AwsPlaces {
  std::string profile;            ///< AWS_PROFILE, AWS_DEFAULT_PROFILE, or "default"
  bool profile_is_named = false;  ///< by a variable: then it has to exist
  std::string config;             ///< AWS_CONFIG_FILE, or ~/.aws/config; empty: there is no home folder
  std::string credentials;        ///< AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials
};
using VariableOf = std::function<std::optional<std::string>(const std::string&)>;
[[nodiscard]] AwsPlaces aws_places(const VariableOf& variable);

/// What the files say, and what could not be read.
struct AwsFiles {
  AwsPlaces places;
  AwsProfiles found;
  std::string missing;  ///< for people: "no file /root/.aws/config; cannot read …"; empty: both were read
};
using ReadFile = std::function<Result<std::string>(const std::string& path)>;

/// Reads both files. A file that is not there says nothing. Code::usage for one that is damaged, or that cannot be
/// read although a variable names it (or a profile), and for a named profile that is in neither. Waits for the disk.
[[nodiscard]] Result<AwsFiles> read_aws_files(const VariableOf& variable, const ReadFile& read);

}  // namespace holdfast::store::dynamodb
