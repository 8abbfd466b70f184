#include "serve/json_value.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <type_traits>

#include "holdfast/assert.hpp"

namespace holdfast::serve {

namespace json = boost::json;

// Documents nest to a limit, and so do rows: both of these end.

Value value_from(const json::value& from) {
  switch (from.kind()) {
    case json::kind::null:
      return nullptr;
    case json::kind::bool_:
      return from.get_bool();
    case json::kind::int64:
      return Value(std::int64_t{from.get_int64()});
    case json::kind::double_:
      return from.get_double();
    case json::kind::string:
      return std::string(from.get_string().data(), from.get_string().size());
    case json::kind::array: {
      Value::List list;
      for (const json::value& each : from.get_array()) list.push_back(value_from(each));
      return list;
    }
    case json::kind::object:
      break;
    case json::kind::uint64:
      HOLDFAST_ASSERT(false, "parse_document() refuses numbers beyond 64 bits with a sign");
  }
  Value::Map map;
  for (const auto& member : from.get_object()) {
    map.insert_or_assign(std::string(member.key().data(), member.key().size()), value_from(member.value()));
  }
  return map;
}

json::value json_from(const Value& value) {
  return std::visit(
      [](const auto& data) -> json::value {
        using Data = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<Data, Value::List>) {
          json::array list;
          for (const Value& each : data) list.push_back(json_from(each));
          return list;
        } else if constexpr (std::is_same_v<Data, Value::Map>) {
          json::object object;
          for (const auto& [name, each] : data) object[name] = json_from(each);
          return object;
        } else if constexpr (std::is_same_v<Data, Value::Unreadable>) {
          return json::value(data.what);
        } else {
          return json::value(data);
        }
      },
      value.data());
}

}  // namespace holdfast::serve
