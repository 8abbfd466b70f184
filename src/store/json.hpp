#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"
#include "holdfast/row.hpp"

namespace holdfast::store {

/// How deep values may nest, a row's attributes being the first level (DynamoDB's limit).
inline constexpr int depth_max = 32;

/// JSON in its shortest form, map keys in order. Integers carry all 64 bits and are written without a point,
/// doubles always with a point or an exponent, so that each comes back as what it was. Strings must be UTF-8 and
/// doubles finite (JSON has no word for the others): check() sees to both before a value gets into a row. An
/// unreadable value becomes a text that names it, for people only.
[[nodiscard]] std::string to_json(const Value& value);
[[nodiscard]] std::string to_json(const Attributes& attributes);
/// The same, appended.
void write_json(const Attributes& attributes, std::string& out);
void write_json(std::string_view text, std::string& out);
/// The shortest digits that say this number, appended; a double has a point or an exponent.
void write_json(std::int64_t number, std::string& out);
void write_json(double number, std::string& out);

/// Code::corrupt with what is wrong and where. A number beyond 64 bits becomes the nearest double; one beyond
/// double is an error. Of two equal keys the last counts.
[[nodiscard]] Result<Value> value_from_json(std::string_view text);
[[nodiscard]] Result<Attributes> attributes_from_json(std::string_view text);

}  // namespace holdfast::store
