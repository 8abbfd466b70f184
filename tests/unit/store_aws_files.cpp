#include "store/dynamodb/aws_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/environment.hpp"
#include "runtime/spawn.hpp"
#include "store/dynamodb/credentials_plan.hpp"
#include "support/places.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::store::dynamodb {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

const std::string corpus = std::string(test::source_folder) + "/tests/support/aws_files";

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// What botocore says of it: tests/support/aws_botocore.py.
json::value botocore(std::vector<std::string> arguments) {
  runtime::SpawnOptions options;
  options.arguments = {runtime::environment("HOLDFAST_PYTHON").value_or("/usr/bin/python3"),
                       std::string(test::source_folder) + "/tests/support/aws_botocore.py"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.output = runtime::SpawnOptions::Output::pipe;
  auto child = runtime::spawn(options);
  EXPECT_TRUE(child) << child.error().detail;
  const std::string output = child->read_all(std::chrono::seconds(60));
  EXPECT_EQ(child->wait(std::chrono::seconds(60)), (runtime::Exit{0, 0})) << "is python3-botocore installed?";
  json::error_code error;
  json::value value = json::parse(output, error);
  EXPECT_FALSE(error) << output;
  return value;
}

json::value to_json(const AwsSetting& setting) {
  if (setting.block.empty()) return json::string(setting.text);
  json::object block;
  for (const auto& [name, value] : setting.block) block[name] = value;
  return block;
}
json::object to_json(const AwsSection& section) {
  json::object object;
  for (const auto& [name, setting] : section) object[name] = to_json(setting);
  return object;
}
json::object to_json(const std::map<std::string, AwsSection>& sections) {
  json::object object;
  for (const auto& [name, section] : sections) object[name] = to_json(section);
  return object;
}

TEST(AwsFiles, are_read_as_botocore_reads_them) {
  const json::value theirs = botocore({"files", corpus});
  ASSERT_TRUE(theirs.is_object());
  ASSERT_GT(theirs.get_object().size(), 20U) << "where is the corpus?";
  for (const auto& [name, expected] : theirs.get_object()) {
    SCOPED_TRACE(std::string(name));
    const Result<AwsSections> ours = parse_aws_file(content_of(corpus + "/" + std::string(name)));
    ASSERT_EQ(ours.has_value(), expected.is_object()) << (ours ? "" : ours.error().detail);
    EXPECT_EQ(std::string(name).starts_with("bad_"), !ours.has_value());
    if (!ours) continue;
    EXPECT_EQ(json::value(to_json(std::map<std::string, AwsSection>(ours->begin(), ours->end()))),
              expected.at("sections"));
    EXPECT_EQ(json::value(to_json(sort_out(*ours, {}).profiles)), expected.at("profiles"));
  }
}

TEST(AwsFiles, make_the_profiles_together_that_botocore_makes_of_both) {
  for (const std::string name : {"usual", "sections", "nested", "empty", "defaults"}) {
    const std::string config = corpus + "/" + name + ".ini";
    const std::string credentials = corpus + "/credentials.ini";
    const auto ours = sort_out(*parse_aws_file(content_of(config)), *parse_aws_file(content_of(credentials)));
    EXPECT_EQ(json::value(to_json(ours.profiles)), botocore({"together", config, credentials})) << name;
  }
}

TEST(AwsFiles, split_a_command_line_as_a_shell_does) {
  const std::vector<std::string> lines = {"/bin/get --for dev",
                                          "  a   b  ",
                                          "\"two words\" 'and more' x\"y z\"w",
                                          "a\\ b c\\\\d",
                                          "\"a \\\" b\" \"\\x\"",
                                          "'it''s' ''",
                                          "\"\"",
                                          "",
                                          "'open",
                                          "\"open",
                                          "back\\",
                                          "a # no comment",
                                          "$HOME `x` $(y) *",
                                          "'a\\'",
                                          "tab\tbetween"};
  const test::TemporaryFolder folder;
  std::string text;
  for (const std::string& line : lines) text += (text.empty() && &line == &lines.front() ? "" : "\n") + line;
  write(folder.file("lines"), text);
  const json::value theirs = botocore({"split", folder.file("lines")});
  ASSERT_EQ(theirs.get_array().size(), lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto ours = split_as_shell(lines[i]);
    const json::value& expected = theirs.get_array().at(i);
    ASSERT_EQ(ours.has_value(), expected.is_array()) << lines[i];
    if (!ours) continue;
    EXPECT_EQ(json::value_from(*ours), expected) << lines[i];
  }
}

TEST(AwsFiles, a_byte_order_mark_is_skipped) {
  const auto sections = parse_aws_file("\xef\xbb\xbf[default]\nregion = eu-west-1\n");
  ASSERT_TRUE(sections) << sections.error().detail;
  EXPECT_EQ(sections->at(0).first, "default");
}

TEST(AwsFiles, an_error_names_the_line_and_shows_nothing_of_it) {
  const struct {
    const char* text;
    const char* where;
  } cases[] = {
      {"SECRETsecret = 1\n", "line 1"},
      {"[default]\n\nSECRETsecret\n", "line 3"},
      {"[default]\na = 1\n\n# x\na = SECRETsecret\n", "line 5"},
      {"[default]\n= SECRETsecret\n", "line 2"},
      {"[default]\na = 1\ns3 =\n  SECRETsecret\n", "line 3"},
      {"[default]\n[default]\na = SECRETsecret", "line 2"},
  };
  for (const auto& [text, where] : cases) {
    const auto sections = parse_aws_file(text);
    ASSERT_FALSE(sections) << text;
    EXPECT_THAT(sections.error().detail, HasSubstr(where)) << text;
    EXPECT_THAT(sections.error().detail, Not(HasSubstr("SECRET"))) << text;
  }
}

/// Variables and files that a test makes up.
struct Machine {
  std::map<std::string, std::string> variables{{"HOME", "/home/me"}};
  std::map<std::string, std::string> files;
  std::map<std::string, Code> troubles;

  [[nodiscard]] VariableOf variable() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
  }
  [[nodiscard]] Result<AwsFiles> read() const {
    return read_aws_files(variable(), [this](const std::string& path) -> Result<std::string> {
      if (const auto trouble = troubles.find(path); trouble != troubles.end())
        return fail(trouble->second, "cannot read the file " + path + ": trouble");
      const auto found = files.find(path);
      if (found == files.end()) return fail(Code::not_found, "cannot read the file " + path + ": none");
      return found->second;
    });
  }
};

TEST(AwsFiles, are_where_the_environment_says_or_in_the_home_folder) {
  Machine machine;
  EXPECT_EQ(aws_places(machine.variable()).config, "/home/me/.aws/config");
  EXPECT_EQ(aws_places(machine.variable()).credentials, "/home/me/.aws/credentials");
  EXPECT_EQ(aws_places(machine.variable()).profile, "default");
  machine.variables = {{"AWS_CONFIG_FILE", "~/x"},
                       {"AWS_SHARED_CREDENTIALS_FILE", "/y"},
                       {"HOME", "/h"},
                       {"AWS_DEFAULT_PROFILE", "secondary"},
                       {"AWS_PROFILE", "first"}};
  EXPECT_EQ(aws_places(machine.variable()).config, "/h/x");
  EXPECT_EQ(aws_places(machine.variable()).credentials, "/y");
  EXPECT_EQ(aws_places(machine.variable()).profile, "first");
  machine.variables = {{"AWS_DEFAULT_PROFILE", "secondary"}};
  EXPECT_EQ(aws_places(machine.variable()).profile, "secondary");
  EXPECT_EQ(aws_places(machine.variable()).config, "") << "there is no home folder";
  const auto files = machine.read();
  ASSERT_FALSE(files) << "a named profile has to exist";
  EXPECT_THAT(files.error().detail, HasSubstr("HOME is not set"));
}

TEST(AwsFiles, that_are_not_there_say_nothing) {
  const auto files = Machine().read();
  ASSERT_TRUE(files);
  EXPECT_TRUE(files->found.profiles.empty());
  EXPECT_EQ(files->missing, "no file /home/me/.aws/config, no file /home/me/.aws/credentials");
}

TEST(AwsFiles, that_cannot_be_read_are_an_error_only_where_they_were_asked_for) {
  Machine machine;
  machine.troubles = {{"/home/me/.aws/config", Code::denied}};
  ASSERT_TRUE(machine.read());
  EXPECT_THAT(machine.read()->missing, HasSubstr("cannot read the file /home/me/.aws/config"));
  machine.variables["AWS_CONFIG_FILE"] = "/home/me/.aws/config";
  ASSERT_FALSE(machine.read());
  EXPECT_EQ(machine.read().error().code, Code::usage);
  machine.variables.erase("AWS_CONFIG_FILE");
  machine.variables["AWS_PROFILE"] = "dev";
  EXPECT_FALSE(machine.read());
}

TEST(AwsFiles, that_are_damaged_are_an_error_with_their_name) {
  Machine machine;
  machine.files["/home/me/.aws/credentials"] = "[default]\naws_secret_access_key TOPSECRET\n";
  const auto files = machine.read();
  ASSERT_FALSE(files);
  EXPECT_THAT(files.error().detail, HasSubstr("/home/me/.aws/credentials: line 2"));
  EXPECT_THAT(files.error().detail, Not(HasSubstr("TOPSECRET")));
}

TEST(AwsFiles, a_named_profile_has_to_be_in_one_of_them) {
  Machine machine;
  machine.files["/home/me/.aws/config"] = "[profile dev]\n[dev2]\nregion = x\n";
  machine.files["/home/me/.aws/credentials"] = "[ops]\n";
  machine.variables["AWS_PROFILE"] = "dev";
  EXPECT_TRUE(machine.read());
  machine.variables["AWS_PROFILE"] = "ops";
  EXPECT_TRUE(machine.read());
  machine.variables["AWS_PROFILE"] = "dev2";
  ASSERT_FALSE(machine.read()) << "[dev2] in the config file is no profile";
  EXPECT_THAT(machine.read().error().detail, HasSubstr("'dev2'"));
}

// ---- who gives credentials: the same as botocore's chain says ----

struct Scenario {
  const char* name;
  std::map<std::string, std::string> env;
  std::string config, credentials;
};

std::vector<Scenario> scenarios() {
  const std::string keys = "aws_access_key_id = CREDS\naws_secret_access_key = s\n";
  const std::string config_keys = "aws_access_key_id = CONFIG\naws_secret_access_key = s\n";
  const std::string process =
      R"(credential_process = printf '{"Version":1,"AccessKeyId":"PROCESS","SecretAccessKey":"s"}')"
      "\n";
  const std::string identity = "role_arn = arn:aws:iam::1:role/r\nweb_identity_token_file = /tmp/none\n";
  const std::string role = "role_arn = arn:aws:iam::1:role/r\nsource_profile = base\n";
  const std::map<std::string, std::string> env_keys = {{"AWS_ACCESS_KEY_ID", "ENV"}, {"AWS_SECRET_ACCESS_KEY", "s"}};
  const std::map<std::string, std::string> env_identity = {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/tmp/none"},
                                                           {"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"}};
  const std::map<std::string, std::string> dev = {{"AWS_PROFILE", "dev"}};
  auto both = env_keys;
  both["AWS_PROFILE"] = "dev";
  auto dev_identity = env_identity;
  dev_identity["AWS_PROFILE"] = "dev";
  const std::string base = "[profile base]\n" + config_keys;
  return {
      {"nothing", {}, "", ""},
      {"the environment before all", env_keys, "[default]\n" + config_keys + process, "[default]\n" + keys},
      {"the environment before a named profile", both, "[profile dev]\n" + config_keys, ""},
      {"half of the environment's keys", {{"AWS_ACCESS_KEY_ID", "ENV"}}, "", "[default]\n" + keys},
      {"a secret without its id", {{"AWS_SECRET_ACCESS_KEY", "s"}}, "", "[default]\n" + keys},
      {"a role before a web identity", env_identity, "[default]\n" + role + base, ""},
      {"a web identity before keys", env_identity, "[default]\n" + config_keys, "[default]\n" + keys},
      {"a web identity of a profile", dev, "[profile dev]\n" + identity + config_keys, "[dev]\n" + keys},
      {"a web identity without a role", {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/tmp/none"}}, "", "[default]\n" + keys},
      {"the profile's role for the environment's token",
       {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/tmp/none"}, {"AWS_PROFILE", "dev"}},
       "[profile dev]\n" + identity,
       ""},
      {"a web identity in the credentials file", dev, "", "[dev]\n" + identity},
      {"the credentials file before a process", {}, "[default]\n" + process, "[default]\n" + keys},
      {"a process before the config file's keys", {}, "[default]\n" + process + config_keys, ""},
      {"a process in the credentials file", {}, "", "[default]\n" + process},
      {"the config file's keys", {}, "[default]\n" + config_keys, ""},
      {"keys of another profile", dev, "[profile dev]\nregion = x\n[profile other]\n" + config_keys, ""},
      {"half of a profile's keys", {}, "", "[default]\naws_access_key_id = CREDS\n"},
      {"a role that is its own source", dev,
       "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = dev\n", "[dev]\n" + keys},
      {"a role in a circle", dev,
       "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = b\n"
       "[profile b]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = dev\n",
       ""},
      {"a role without a source", dev, "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\n", ""},
      {"a role with two sources", dev,
       "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\ncredential_source = Environment\n" +
           base,
       ""},
      {"a role whose source is not there", dev,
       "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = x\n", ""},
      {"a role whose source is unknown", dev,
       "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\ncredential_source = Elsewhere\n", ""},
      {"a role by way of a role", dev,
       "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = mid\n"
       "[profile mid]\n" +
           role + base,
       ""},
      {"a profile that is not there", dev_identity, "[profile other]\n" + config_keys, "[default]\n" + keys},
  };
}

/// Ours in botocore's words.
json::object who(const Scenario& scenario) {
  Machine machine;
  machine.variables = scenario.env;
  machine.variables.insert({{"AWS_CONFIG_FILE", "/config"}, {"AWS_SHARED_CREDENTIALS_FILE", "/credentials"}});
  machine.files = {{"/config", scenario.config}, {"/credentials", scenario.credentials}};
  const json::object error{{"error", true}};
  if (scenario.env.contains("AWS_ACCESS_KEY_ID")) {
    if (!scenario.env.contains("AWS_SECRET_ACCESS_KEY")) return error;
    return {{"method", "env"}, {"access_key", scenario.env.at("AWS_ACCESS_KEY_ID")}};
  }
  const auto files = machine.read();
  if (!files) return error;
  const CredentialPlan plan = plan_credentials(machine.variable(), *files);
  using Kind = CredentialPlan::Kind;
  switch (plan.kind) {
    case Kind::nothing:
      return {{"method", nullptr}};
    case Kind::keys:
      return {{"method", plan.from.ends_with("(/config)") ? "config-file" : "shared-credentials-file"},
              {"access_key", plan.keys.access_key_id}};
    case Kind::process:
      return {{"method", "custom-process"}, {"access_key", "PROCESS"}};
    case Kind::web_identity:
      return {{"method", "assume-role-with-web-identity"}};
    case Kind::role:
      return {{"method", "assume-role"}};
    default:
      return error;
  }
}

TEST(AwsFiles, and_variables_choose_whom_botocore_chooses) {
  const std::vector<Scenario> all = scenarios();
  json::array asked;
  for (const Scenario& scenario : all) {
    json::object env;
    for (const auto& [name, value] : scenario.env) env[name] = value;
    asked.push_back(json::object{{"env", env}, {"config", scenario.config}, {"credentials", scenario.credentials}});
  }
  const test::TemporaryFolder folder;
  write(folder.file("scenarios"), json::serialize(asked));
  const json::value theirs = botocore({"chain", folder.file("scenarios")});
  ASSERT_EQ(theirs.get_array().size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    json::object expected = theirs.get_array().at(i).get_object();
    if (expected.contains("error")) expected["error"] = true;  // which one it raises is its own business
    EXPECT_EQ(json::value(who(all[i])), json::value(expected)) << all[i].name;
  }
}

TEST(AwsFiles, botocores_order_of_providers_is_the_one_that_was_copied) {
  const json::value order = botocore({"order"});
  std::vector<std::string> ours_too;
  for (const json::value& name : order.get_array()) {
    const std::string text(name.get_string());
    if (text != "sso" && text != "ec2-credentials-file" && text != "boto-config" && text != "login")
      ours_too.push_back(text);
  }
  EXPECT_EQ(ours_too, (std::vector<std::string>{"env", "assume-role", "assume-role-with-web-identity",
                                                "shared-credentials-file", "custom-process", "config-file",
                                                "container-role", "iam-role"}));
}

}  // namespace
}  // namespace holdfast::store::dynamodb
