#pragma once
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "core/coord/names.hpp"
#include "holdfast/types.hpp"
#include "serve/problem.hpp"

namespace holdfast::serve {

struct Schema;

/// Bytes of a name that a caller chooses, in a path or in a body.
inline constexpr auto name_most = static_cast<std::int64_t>(coord::name_bytes_most);

/// One member of an object, or one part of a URL: what may be in it. Requests are read by these, and the OpenAPI
/// document is written from them, so that neither can say other than the other.
struct Field {
  enum class Type {
    text,
    duration,  ///< text with a unit: "10s"
    integer,
    boolean,
    any,     ///< any JSON
    counts,  ///< an object from names (1 to name_most bytes) to whole numbers, each at least 1
    object,  ///< of the schema `of`
    list,    ///< of such; of texts where there is no `of`
  };
  std::string_view name;
  Type type = Type::text;
  std::string_view about = {};
  bool is_required = false;
  bool may_be_null = false;         ///< in an answer
  std::string_view otherwise = {};  ///< the default, as it would be written
  /// A text's bytes, a number's value, a duration's milliseconds, how many counts.
  std::int64_t least = 0, most = INT64_MAX;
  std::vector<std::string_view> words = {};  ///< a text is one of these
  std::shared_ptr<const Schema> of = nullptr;
};

struct Schema {
  std::string_view name;
  std::string_view about;
  std::vector<Field> fields;
};

/// What a request says, after it was looked at: asking for a member that its schema does not have, or as another
/// type, is a broken invariant.
class Input {
 public:
  using Counts = std::map<std::string, std::int64_t>;
  using Content = std::variant<std::string, Duration, std::int64_t, bool, boost::json::value, Counts>;

  void set(std::string_view name, Content content) {
    members_.insert_or_assign(std::string(name), std::move(content));
  }
  [[nodiscard]] bool has(std::string_view name) const { return members_.find(name) != members_.end(); }
  [[nodiscard]] const std::string& text(std::string_view name) const { return get<std::string>(name); }
  [[nodiscard]] Duration duration(std::string_view name) const { return get<Duration>(name); }
  [[nodiscard]] std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  [[nodiscard]] bool flag(std::string_view name) const { return get<bool>(name); }
  [[nodiscard]] const boost::json::value& any(std::string_view name) const { return get<boost::json::value>(name); }
  [[nodiscard]] const Counts& counts(std::string_view name) const { return get<Counts>(name); }

 private:
  template <class T>
  [[nodiscard]] const T& get(std::string_view name) const;
  std::map<std::string, Content, std::less<>> members_;
};

/// Strictly: no member that is unknown, missing, of another type or out of its bounds. The problem (400) says which.
[[nodiscard]] tl::expected<Input, Problem> read_body(const Schema& schema, std::string_view body);
/// The same for what stands behind the "?" of a URL.
[[nodiscard]] tl::expected<Input, Problem> read_query(const std::vector<Field>& fields, std::string_view query);

/// Of an answer that lists rows: those that it leaves out.
[[nodiscard]] Field damaged_field();

/// A part of a URL as it was meant; nothing where it is not UTF-8 or has a control character in it.
[[nodiscard]] std::optional<std::string> decode_part(std::string_view encoded);

}  // namespace holdfast::serve
