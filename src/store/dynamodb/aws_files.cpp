#include "store/dynamodb/aws_files.hpp"

#include <algorithm>
#include <cstddef>
#include <set>

#include "core/utf8.hpp"

namespace holdfast::store::dynamodb {
namespace {

/// What Python strips, as far as it is ASCII.
constexpr std::string_view spaces = " \t\n\r\v\f\x1c\x1d\x1e\x1f";

std::string_view trim_end(std::string_view text) {
  const std::size_t last = text.find_last_not_of(spaces);
  return last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1);
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(spaces);
  return first == std::string_view::npos ? std::string_view{} : trim_end(text.substr(first));
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return result;
}

/// Lines that end with LF, CR LF or CR.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of("\r\n");
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + (text.substr(end, 2) == "\r\n" ? 2 : 1));
  }
  return lines;
}

/// Code::usage at a line, by its number from 1.
tl::unexpected<Error> fault(std::size_t line, const std::string& what) {
  return fail(Code::usage, "line " + std::to_string(line) + ": " + what);
}

class Parser {
 public:
  Result<AwsSections> parse(std::string_view text);

 private:
  using Values = std::map<std::string, std::vector<std::string>>;  // the lines of each value

  /// What is wrong with the line, if anything.
  std::optional<std::string> take(std::string_view line);
  std::optional<std::string> begin_section(std::string name);
  std::optional<std::string> take_setting(std::string_view line);
  Result<AwsSections> finish() const;

  std::vector<std::pair<std::string, Values>> sections_;
  std::map<std::string, std::size_t> line_of_;  // by section and name: for errors
  Values defaults_;
  Values* section_ = nullptr;
  std::string section_name_;
  std::string name_;  // of the setting to which deeper lines belong; empty: none
  std::size_t indent_ = 0;
  std::size_t line_ = 0;
};

Result<AwsSections> Parser::parse(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (!is_utf8(text)) return fail(Code::usage, "it is no UTF-8 text");
  for (const std::string_view line : lines_of(text)) {
    ++line_;
    if (std::optional<std::string> wrong = take(line)) return fault(line_, *wrong);
  }
  return finish();
}

std::optional<std::string> Parser::take(std::string_view line) {
  const std::string_view value = trim(line);
  if (value.starts_with('#') || value.starts_with(';')) return std::nullopt;
  if (value.empty()) {
    if (!name_.empty()) section_->at(name_).emplace_back();
    return std::nullopt;
  }
  const std::size_t indent = line.find_first_not_of(spaces);
  if (!name_.empty() && indent > indent_) {
    section_->at(name_).emplace_back(value);
    return std::nullopt;
  }
  indent_ = indent;
  const std::size_t close = value.rfind(']');
  if (value.front() == '[' && close != std::string_view::npos && close > 1)
    return begin_section(std::string(value.substr(1, close - 1)));
  if (section_ == nullptr) return "it stands before the first section: begin with [default]";
  return take_setting(value);
}

std::optional<std::string> Parser::begin_section(std::string name) {
  name_.clear();
  section_name_ = std::move(name);
  if (section_name_ == "DEFAULT") {
    section_ = &defaults_;
    return std::nullopt;
  }
  const auto same = [this](const auto& entry) { return entry.first == section_name_; };
  if (std::ranges::any_of(sections_, same)) return "the section stands twice in the file: leave one";
  sections_.emplace_back(section_name_, Values{});
  section_ = &sections_.back().second;
  return std::nullopt;
}

std::optional<std::string> Parser::take_setting(std::string_view line) {
  const std::size_t sign = line.find_first_of("=:");
  if (sign == std::string_view::npos) return "neither [section] nor name = value";
  const std::string name = lower(trim_end(line.substr(0, sign)));
  if (name.empty()) return "there is no name before the sign";
  if (!section_->try_emplace(name, 1, std::string(trim(line.substr(sign + 1)))).second)
    return "the setting stands twice in its section: leave one";
  line_of_[section_name_ + '\n' + name] = line_;
  name_ = name;
  return std::nullopt;
}

/// The lines of one value: text, or a block of settings if the first one is empty.
std::optional<AwsSetting> setting_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (&line == &lines.front() ? "" : "\n") + line;
  text = trim_end(text);
  AwsSetting setting;
  if (!text.starts_with('\n')) {
    setting.text = std::move(text);
    return setting;
  }
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    const std::size_t sign = line.find('=');
    if (sign == std::string::npos) return std::nullopt;
    setting.block[std::string(trim(std::string_view(line).substr(0, sign)))] =
        trim(std::string_view(line).substr(sign + 1));
  }
  return setting;
}

Result<AwsSections> Parser::finish() const {
  AwsSections result;
  for (const auto& [section, own] : sections_) {
    Values values = own;
    values.insert(defaults_.begin(), defaults_.end());  // own ones stay
    AwsSection& filled = result.emplace_back(section, AwsSection{}).second;
    for (const auto& [name, lines] : values) {
      std::optional<AwsSetting> setting = setting_of(lines);
      if (!setting) {
        const std::string home = own.contains(name) ? section : "DEFAULT";
        return fault(line_of_.at(home + '\n' + name), "below it is a line that is no name = value");
      }
      filled.emplace(name, *std::move(setting));
    }
  }
  return result;
}

/// NAME of `[profile NAME]`; nothing where there is none, or more than one word.
std::optional<std::string> second_word(const std::string& header) {
  std::optional<std::vector<std::string>> words = split_as_shell(header);
  if (!words || words->size() != 2) return std::nullopt;
  return std::move(words->at(1));
}

std::string expand_home(std::string path, const std::optional<std::string>& home) {
  if (!home || !(path == "~" || path.starts_with("~/"))) return path;
  return *home + path.substr(1);
}

/// The file's sections; none where it is not there. `missing` collects what people should know.
Result<AwsSections> read_sections(const std::string& path, bool must_be_readable, const ReadFile& read,
                                  std::string& missing) {
  const auto note = [&missing](const std::string& text) {
    if (missing != text) missing += (missing.empty() ? "" : ", ") + text;
  };
  if (path.empty()) {
    note("HOME is not set");
    return AwsSections{};
  }
  Result<std::string> content = read(path);
  if (!content) {
    if (content.error().code == Code::not_found) {
      note("no file " + path);
      return AwsSections{};
    }
    if (must_be_readable) return tl::unexpected(Error(Code::usage, content.error().detail));
    note(content.error().detail);
    return AwsSections{};
  }
  Result<AwsSections> sections = parse_aws_file(*content);
  if (!sections) return fail(Code::usage, "cannot read " + path + ": " + sections.error().detail);
  return sections;
}

}  // namespace

Result<AwsSections> parse_aws_file(std::string_view text) {
  return Parser().parse(text);
}

std::optional<std::vector<std::string>> split_as_shell(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char sign = text[i];
    if (quote == 0 && std::string_view(" \t\r\n").find(sign) != std::string_view::npos) {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (sign == '\\' && quote != '\'') {
      if (++i == text.size()) return std::nullopt;
      // Between double quotes only the quote and the backslash itself lose their backslash.
      if (quote == '"' && text[i] != '"' && text[i] != '\\') words.back() += '\\';
      words.back() += text[i];
    } else if (quote != 0 ? sign == quote : sign == '"' || sign == '\'') {
      quote = quote != 0 ? '\0' : sign;
    } else {
      words.back() += sign;
    }
  }
  if (quote != 0) return std::nullopt;
  return words;
}

AwsProfiles sort_out(const AwsSections& config, const AwsSections& credentials) {
  AwsProfiles result;
  for (const auto& [header, section] : config) {
    if (header == "default") {
      result.config[header] = section;
    } else if (header.starts_with("profile")) {
      if (const auto name = second_word(header)) result.config[*name] = section;
    } else if (header.starts_with("services")) {
      if (const auto name = second_word(header)) result.services[*name] = section;
    }
  }
  result.credentials = {credentials.begin(), credentials.end()};
  result.profiles = result.config;
  for (const auto& [name, section] : credentials)
    for (const auto& [setting, value] : section) result.profiles[name][setting] = value;
  for (const auto& [name, section] : credentials) result.profiles.try_emplace(name);  // empty ones exist too
  return result;
}

std::optional<std::string> text_of(const AwsSection& section, const std::string& name) {
  const auto found = section.find(name);
  if (found == section.end() || found->second.text.empty()) return std::nullopt;
  return found->second.text;
}

AwsPlaces aws_places(const VariableOf& variable) {
  AwsPlaces places;
  std::optional<std::string> profile = variable("AWS_PROFILE");
  if (!profile) profile = variable("AWS_DEFAULT_PROFILE");
  places.profile_is_named = profile.has_value();
  places.profile = profile.value_or("default");
  const std::optional<std::string> home = variable("HOME");
  const auto place = [&](const std::string& name, const std::string& usual) {
    if (const auto path = variable(name)) return expand_home(*path, home);
    return home ? *home + usual : std::string();
  };
  places.config = place("AWS_CONFIG_FILE", "/.aws/config");
  places.credentials = place("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
  return places;
}

Result<AwsFiles> read_aws_files(const VariableOf& variable, const ReadFile& read) {
  AwsFiles files;
  files.places = aws_places(variable);
  const AwsPlaces& places = files.places;
  const auto asked_for = [&](const char* name) { return places.profile_is_named || variable(name).has_value(); };
  Result<AwsSections> config = read_sections(places.config, asked_for("AWS_CONFIG_FILE"), read, files.missing);
  if (!config) return tl::unexpected(config.error());
  Result<AwsSections> credentials =
      read_sections(places.credentials, asked_for("AWS_SHARED_CREDENTIALS_FILE"), read, files.missing);
  if (!credentials) return tl::unexpected(credentials.error());
  files.found = sort_out(*config, *credentials);
  if (places.profile_is_named && !files.found.profiles.contains(places.profile))
    return fail(Code::usage, "the profile '" + places.profile + "' (AWS_PROFILE) is neither [profile " +
                                 places.profile + "] in " + places.config + " nor [" + places.profile + "] in " +
                                 places.credentials + (files.missing.empty() ? "" : " (" + files.missing + ")"));
  return files;
}

}  // namespace holdfast::store::dynamodb
