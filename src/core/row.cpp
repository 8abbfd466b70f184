#include "holdfast/row.hpp"

namespace holdfast {

const Value* Row::find(std::string_view name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : &found->second;
}

std::int64_t Row::number(std::string_view name, std::int64_t fallback) const {
  const Value* value = find(name);
  const std::int64_t* number = value == nullptr ? nullptr : value->as_int();
  return number == nullptr ? fallback : *number;
}

std::string_view Row::text(std::string_view name) const {
  const Value* value = find(name);
  const std::string* text = value == nullptr ? nullptr : value->as_string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

}  // namespace holdfast
