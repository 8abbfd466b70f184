#include "store/dynamodb/members.hpp"

#include <boost/json/value.hpp>

namespace holdfast::store::dynamodb {

namespace json = boost::json;

std::string text_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

const json::object* object_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array& array_in(const json::object& object, std::string_view name) {
  static const json::array none;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_array() ? value->get_array() : none;
}

}  // namespace holdfast::store::dynamodb
