#include "serve/json_document.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <set>
#include <utility>
#include <vector>

namespace holdfast::serve {

namespace {

namespace json = boost::json;
using boost::system::error_code;

/// Builds the document as Boost.JSON's own handler does, and remembers the names of the members it is inside of.
class Builder {
 public:
  static constexpr std::size_t max_object_size = 100'000;
  static constexpr std::size_t max_array_size = 100'000;
  static constexpr std::size_t max_key_size = 4096;
  static constexpr std::size_t max_string_size = std::size_t{16} << 20U;

  json::value_stack stack;
  bool has_twice = false;

  [[nodiscard]] std::string where() const {
    std::string pointer;
    for (const Level& level : levels_) {
      if (!level.latest.empty() || level.is_object) pointer += "/" + pointer_part(level.latest);
    }
    return pointer;
  }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) {
    levels_.push_back({true, {}, {}});
    return true;
  }
  bool on_object_end(std::size_t size, error_code&) {
    levels_.pop_back();
    stack.push_object(size);
    return true;
  }
  bool on_array_begin(error_code&) {
    levels_.push_back({false, {}, {}});
    return true;
  }
  bool on_array_end(std::size_t size, error_code&) {
    levels_.pop_back();
    stack.push_array(size);
    return true;
  }
  bool on_key_part(json::string_view text, std::size_t, error_code&) {
    key_ += text;
    stack.push_chars(text);
    return true;
  }
  bool on_key(json::string_view text, std::size_t, error_code& error) {
    key_ += text;
    Level& level = levels_.back();
    level.latest = std::exchange(key_, {});
    if (!level.seen.insert(level.latest).second) {
      has_twice = true;
      error = json::error::extra_data;
      return false;
    }
    stack.push_key(text);
    return true;
  }
  bool on_string_part(json::string_view text, std::size_t, error_code&) {
    stack.push_chars(text);
    return true;
  }
  bool on_string(json::string_view text, std::size_t, error_code&) {
    stack.push_string(text);
    return true;
  }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, error_code&) {
    stack.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t, json::string_view, error_code& error) {
    error = json::error::exponent_overflow;
    return false;
  }
  bool on_double(double number, json::string_view, error_code&) {
    stack.push_double(number);
    return true;
  }
  bool on_bool(bool is, error_code&) {
    stack.push_bool(is);
    return true;
  }
  bool on_null(error_code&) {
    stack.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

 private:
  struct Level {
    bool is_object = false;
    std::string latest;
    std::set<std::string> seen;
  };
  std::vector<Level> levels_;
  std::string key_;
};

std::string described(const error_code& error) {
  if (error == json::error::exponent_overflow) {
    return "A number here does not fit into 64 bits with a sign: up to 9223372036854775807 it does.";
  }
  if (error == json::error::too_deep) {
    return "The document nests deeper than " + std::to_string(depth_most) + " levels.";
  }
  if (error == json::error::incomplete) return "The document ends too early.";
  return "The document is not JSON: " + error.message() + ".";
}

}  // namespace

std::string pointer_part(std::string_view name) {
  std::string part;
  for (const char c : name) {
    if (c == '~') part += "~0";
    if (c == '/') part += "~1";
    if (c != '~' && c != '/') part += c;
  }
  return part;
}

tl::expected<json::value, NoDocument> parse_document(std::string_view text) {
  json::parse_options options;
  options.max_depth = depth_most;
  json::basic_parser<Builder> parser(options);
  Builder& builder = parser.handler();
  builder.stack.reset();
  error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (builder.has_twice) return tl::unexpected(NoDocument{"This member is there twice.", builder.where()});
  if (!error && read < text.size()) error = json::error::extra_data;
  if (error) return tl::unexpected(NoDocument{described(error), builder.where()});
  return builder.stack.release();
}

}  // namespace holdfast::serve
