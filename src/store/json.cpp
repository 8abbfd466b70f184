#include "store/json.hpp"

#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/hexadecimal.hpp"
#include "holdfast/assert.hpp"

namespace holdfast::store {

namespace {

void write(const Value& value, std::string& out);

void write(std::string_view text, std::string& out) {
  out.push_back('"');
  std::size_t plain = 0;  // where the run of bytes that need no escape began
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text, plain, at - plain);
    plain = at + 1;
    out.push_back('\\');
    if (byte >= 0x20) {
      out.push_back(text[at]);
    } else {
      out.append("u00");
      append_hexadecimal(text.substr(at, 1), out);
    }
  }
  out.append(text, plain);
  out.push_back('"');
}

void write(std::int64_t number, std::string& out) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void write(double number, std::string& out) {
  HOLDFAST_ASSERT(std::isfinite(number), "a number that JSON cannot tell was let into a row");
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const std::string_view shortest(digits.data(), static_cast<std::size_t>(end - digits.data()));
  out.append(shortest);
  if (shortest.find_first_of(".e") == std::string_view::npos) out.append(".0");
}

void write(const Value::List& list, std::string& out) {
  out.push_back('[');
  for (const Value& item : list) {
    if (&item != &list.front()) out.push_back(',');
    write(item, out);
  }
  out.push_back(']');
}

void write(const Value::Map& map, std::string& out) {
  char before = '{';
  for (const auto& [key, value] : map) {
    out.push_back(before);
    before = ',';
    write(std::string_view(key), out);
    out.push_back(':');
    write(value, out);
  }
  if (map.empty()) out.push_back('{');
  out.push_back('}');
}

struct Writer {
  std::string& out;
  void operator()(std::nullptr_t) const { out.append("null"); }
  void operator()(bool value) const { out.append(value ? "true" : "false"); }
  void operator()(const std::string& value) const { write(std::string_view(value), out); }
  void operator()(const Value::Unreadable& value) const { write(std::string_view("(" + value.what + ")"), out); }
  void operator()(const auto& value) const { write(value, out); }
};

void write(const Value& value, std::string& out) {
  std::visit(Writer{out}, value.data());
}

/// What the parser tells, put together bottom up. We read doubles from their text ourselves: this Boost's own
/// reading is off in the last bit for one number in three.
class Builder {
 public:
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;
  using error_code = boost::json::error_code;
  using Text = boost::json::string_view;

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return open(); }
  bool on_array_begin(error_code&) { return open(); }
  bool on_object_end(std::size_t, error_code&) {
    Value::Map map(std::move(levels_.back().items));
    levels_.pop_back();
    if (!levels_.empty()) return add(Value(std::move(map)));
    object_ = std::move(map);
    return true;
  }
  bool on_array_end(std::size_t, error_code&) {
    Value::List list = std::move(levels_.back().list);
    levels_.pop_back();
    return add(Value(std::move(list)));
  }
  bool on_key_part(Text text, std::size_t, error_code&) { return gather(text); }
  bool on_key(Text text, std::size_t, error_code&) {
    gather(text);
    levels_.back().key = std::exchange(part_, {});
    levels_.back().is_map = true;
    return true;
  }
  bool on_string_part(Text text, std::size_t, error_code&) { return gather(text); }
  bool on_string(Text text, std::size_t, error_code&) {
    gather(text);
    return add(Value(std::exchange(part_, {})));
  }
  bool on_number_part(Text text, error_code&) { return gather(text); }
  bool on_int64(std::int64_t number, Text, error_code&) {
    part_.clear();
    return add(Value(number));
  }
  bool on_uint64(std::uint64_t rough, Text text, error_code& error) {
    return on_double(static_cast<double>(rough), text, error);
  }
  bool on_double(double rough, Text text, error_code& error) {
    gather(text);
    double number = 0;
    const auto problem = std::from_chars(part_.data(), part_.data() + part_.size(), number).ec;
    part_.clear();
    // Too small to tell from zero is zero; too large is no number of ours.
    const bool is_tiny = problem == std::errc::result_out_of_range && std::abs(rough) < 1;
    if (problem != std::errc() && !is_tiny) error = boost::json::error::exponent_overflow;
    return !error && add(Value(number));
  }
  bool on_bool(bool value, error_code&) { return add(Value(value)); }
  bool on_null(error_code&) { return add(Value(nullptr)); }
  bool on_comment_part(Text, error_code&) { return true; }
  bool on_comment(Text, error_code&) { return true; }

  /// What the document was, where that is an object.
  std::optional<Attributes>& object() { return object_; }
  Value take() { return object_ ? Value(std::move(*object_)) : std::move(other_); }

 private:
  struct Level {
    std::string key;
    std::vector<Value::Map::Item> items;  // put in order at the end of the object, at once
    Value::List list;
    bool is_map = false;
  };

  bool gather(Text text) {
    part_.append(text.data(), text.size());
    return true;
  }
  bool open() {
    levels_.emplace_back();
    return true;
  }
  bool add(Value value) {
    if (levels_.empty()) {
      other_ = std::move(value);
    } else if (Level& level = levels_.back(); level.is_map) {
      level.items.emplace_back(std::move(level.key), std::move(value));
    } else {
      level.list.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Level> levels_;
  std::string part_;
  std::optional<Attributes> object_;
  Value other_;
};

using Parser = boost::json::basic_parser<Builder>;

boost::json::parse_options parse_options() {
  boost::json::parse_options options;
  options.max_depth = depth_max;
  return options;
}

std::optional<Error> parse(Parser& parser, std::string_view text) {
  boost::json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) error = boost::json::error::extra_data;
  if (!error) return std::nullopt;
  return Error(Code::corrupt, "not valid JSON at byte " + std::to_string(used) + ": " + error.message());
}

}  // namespace

std::string to_json(const Value& value) {
  std::string out;
  write(value, out);
  return out;
}

std::string to_json(const Attributes& attributes) {
  std::string out;
  write(attributes, out);
  return out;
}

void write_json(const Attributes& attributes, std::string& out) {
  write(attributes, out);
}

void write_json(std::string_view text, std::string& out) {
  write(text, out);
}

void write_json(std::int64_t number, std::string& out) {
  write(number, out);
}

void write_json(double number, std::string& out) {
  write(number, out);
}

Result<Value> value_from_json(std::string_view text) {
  Parser parser(parse_options());
  if (auto error = parse(parser, text)) return tl::unexpected<Error>(std::move(*error));
  return parser.handler().take();
}

Result<Attributes> attributes_from_json(std::string_view text) {
  Parser parser(parse_options());
  if (auto error = parse(parser, text)) return tl::unexpected<Error>(std::move(*error));
  if (!parser.handler().object()) return fail(Code::corrupt, "JSON, but not an object");
  return std::move(*parser.handler().object());
}

}  // namespace holdfast::store
