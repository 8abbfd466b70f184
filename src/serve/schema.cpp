#include "serve/schema.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "coord/fingerprint.hpp"
#include "core/hexadecimal.hpp"
#include "core/utf8.hpp"
#include "holdfast/assert.hpp"
#include "runtime/units.hpp"
#include "serve/json_document.hpp"

namespace holdfast::serve {

namespace {

namespace json = boost::json;
using Type = Field::Type;

/// What one member comes to, or the sentence of what is wrong with it.
using Parsed = tl::expected<Input::Content, std::string>;

std::string_view view(json::string_view text) {
  return {text.data(), text.size()};
}

std::string bounds(const Field& field, const std::string& least, const std::string& most) {
  return field.most == INT64_MAX ? "at least " + least : "from " + least + " to " + most;
}

tl::unexpected<std::string> unlike(std::string why) {
  return tl::unexpected<std::string>(std::move(why));
}

Parsed parse_text(const Field& field, std::string text) {
  if (!field.words.empty() && std::ranges::find(field.words, text) == field.words.end()) {
    std::string all;
    for (const std::string_view word : field.words) all += (all.empty() ? "" : ", ") + std::string(word);
    return unlike("must be one of " + all + ".");
  }
  const auto size = static_cast<std::int64_t>(text.size());
  if (size < field.least || size > field.most) {
    return unlike("has " + std::to_string(size) + " bytes, but must have " +
                  bounds(field, std::to_string(field.least), std::to_string(field.most)) + ".");
  }
  return text;
}

Parsed parse_duration(const Field& field, std::string_view text) {
  const Result<Duration> duration = runtime::parse_duration(text);
  if (!duration) return unlike("is no duration: " + duration.error().detail + ".");
  const std::chrono::milliseconds least(field.least);
  // Above 292 years nothing fits; what has no upper bound is bound by that.
  const Duration most = field.most == INT64_MAX ? Duration::max() : Duration(std::chrono::milliseconds(field.most));
  if (*duration < least || *duration > most) {
    return unlike("must be " + bounds(field, runtime::write_duration(least), runtime::write_duration(most)) + ".");
  }
  return *duration;
}

Parsed parse_integer(const Field& field, std::int64_t number) {
  if (number < field.least || number > field.most) {
    return unlike("must be " + bounds(field, std::to_string(field.least), std::to_string(field.most)) + ".");
  }
  return number;
}

/// A whole number, but beyond 64 bits: JSON has it as a double by then.
bool is_too_large(const json::value& value) {
  return value.is_double() && std::abs(value.get_double()) >= 0x1p63;
}

tl::unexpected<std::string> too_large(const Field& field) {
  return unlike("must be " + bounds(field, std::to_string(field.least), std::to_string(field.most)) +
                ": a whole number has 64 bits, one of them for its sign.");
}

Parsed parse_counts(const Field& field, const json::object& object) {
  if (std::cmp_less(object.size(), field.least) || std::cmp_greater(object.size(), field.most)) {
    return unlike("must have " + bounds(field, std::to_string(field.least), std::to_string(field.most)) +
                  " members.");
  }
  Input::Counts counts;
  for (const auto& member : object) {
    const std::int64_t* number = member.value().if_int64();
    if (number == nullptr || *number < 1) return unlike("is an object from names to whole numbers, each at least 1.");
    if (const auto good = coord::check_name("A name", view(member.key())); !good) {
      return unlike("has a name that cannot be one. " + good.error().detail);
    }
    counts.emplace(std::string(view(member.key())), *number);
  }
  return counts;
}

Parsed parse(const Field& field, const json::value& value) {
  switch (field.type) {
    case Type::text:
      if (value.is_string()) return parse_text(field, std::string(view(value.get_string())));
      return unlike("must be text.");
    case Type::duration:
      if (value.is_string()) return parse_duration(field, view(value.get_string()));
      return unlike("must be text with a unit, such as \"10s\".");
    case Type::integer:
      if (value.is_int64()) return parse_integer(field, value.get_int64());
      if (is_too_large(value)) return too_large(field);
      return unlike("must be a whole number.");
    case Type::boolean:
      if (value.is_bool()) return value.get_bool();
      return unlike("must be true or false.");
    case Type::any:
      return value;
    case Type::counts:
      if (value.is_object()) return parse_counts(field, value.get_object());
      return unlike("must be an object from names to whole numbers.");
    case Type::object:
    case Type::list:
      break;
  }
  HOLDFAST_ASSERT(false, "these are in answers only");
  return unlike(std::string());
}

/// What stands in a URL, or in a table of ours as a default.
Parsed parse(const Field& field, std::string text) {
  if (field.type == Type::text) return parse_text(field, std::move(text));
  if (field.type == Type::duration) return parse_duration(field, text);
  if (field.type == Type::boolean) {
    if (text == "true" || text == "false") return text == "true";
    return unlike("must be true or false.");
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) return too_large(field);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return unlike("must be a whole number.");
  }
  return parse_integer(field, number);
}

// What the fields are called by who sends them.
constexpr std::string_view of_body = "member";
constexpr std::string_view of_query = "parameter";

Problem wrong(std::string_view what, std::string_view name, const std::string& why) {
  return bad_request("The " + std::string(what) + " '" + std::string(name) + "' " + why, "/" + pointer_part(name));
}

/// What was not said.
std::optional<Problem> fill_in(std::string_view what, const std::vector<Field>& fields, Input& input) {
  for (const Field& field : fields) {
    if (input.has(field.name)) continue;
    if (field.is_required) {
      return wrong(what, field.name, "is missing: " + std::string(field.about) + ".");
    }
    if (field.otherwise.empty()) continue;
    auto content = parse(field, std::string(field.otherwise));
    HOLDFAST_ASSERT(content.has_value(), "a default is within its bounds");
    input.set(field.name, *std::move(content));
  }
  return std::nullopt;
}

const Field* find(const std::vector<Field>& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

template <class T>
const T& Input::get(std::string_view name) const {
  const auto found = members_.find(name);
  HOLDFAST_ASSERT(found != members_.end() && std::holds_alternative<T>(found->second),
                  "a handler asks for what its schema has");
  return std::get<T>(found->second);
}
template const std::string& Input::get(std::string_view) const;
template const Duration& Input::get(std::string_view) const;
template const std::int64_t& Input::get(std::string_view) const;
template const bool& Input::get(std::string_view) const;
template const json::value& Input::get(std::string_view) const;
template const Input::Counts& Input::get(std::string_view) const;

tl::expected<Input, Problem> read_body(const Schema& schema, std::string_view body) {
  const auto document = parse_document(body);
  if (!document) return tl::unexpected(bad_request(document.error().why, document.error().member));
  const json::object* object = document->if_object();
  if (object == nullptr) return tl::unexpected(bad_request("The body must be a JSON object."));
  Input input;
  for (const auto& member : *object) {
    const std::string_view name = view(member.key());
    const Field* field = find(schema.fields, name);
    if (field == nullptr) return tl::unexpected(wrong(of_body, name, "is not known here."));
    Parsed content = parse(*field, member.value());
    if (!content) return tl::unexpected(wrong(of_body, name, content.error()));
    if (field->type == Field::Type::any && !coord::is_all_kept(body)) {
      // Two values that differ would be taken for one.
      return tl::unexpected(wrong(of_body, name,
                                  "has a number with more digits than a double or a 64-bit integer keeps: give it as "
                                  "a text."));
    }
    input.set(name, *std::move(content));
  }
  if (auto problem = fill_in(of_body, schema.fields, input)) return tl::unexpected(*std::move(problem));
  return input;
}

tl::expected<Input, Problem> read_query(const std::vector<Field>& fields, std::string_view query) {
  Input input;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const auto name = decode_part(pair.substr(0, equals));
    auto text = decode_part(pair.substr(std::min(pair.size(), equals + 1)));
    if (!name || !text) return tl::unexpected(bad_request("The query is not well encoded."));
    const Field* field = find(fields, *name);
    if (field == nullptr) return tl::unexpected(wrong(of_query, *name, "is not known here."));
    if (input.has(*name)) return tl::unexpected(wrong(of_query, *name, "is there twice."));
    Parsed content = parse(*field, *std::move(text));
    if (!content) return tl::unexpected(wrong(of_query, *name, content.error()));
    input.set(*name, *std::move(content));
  }
  if (auto problem = fill_in(of_query, fields, input)) return tl::unexpected(*std::move(problem));
  return input;
}

Field damaged_field() {
  return {.name = "damaged",
          .type = Field::Type::list,
          .about =
              "rows that are left out since they are damaged, the first few: their keys, or what the store says "
              "of one that it cannot read",
          .is_required = true};
}

std::optional<std::string> decode_part(std::string_view encoded) {
  auto text = percent_decoded(encoded);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (!text || std::ranges::any_of(*text, is_control) || !is_utf8(*text)) return std::nullopt;
  return text;
}

}  // namespace holdfast::serve
