#pragma once
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

namespace holdfast::store::dynamodb {

// Members of the server's answers, which are looked at as far as they are there and of the right type.

/// Empty where there is no text of that name.
[[nodiscard]] std::string text_in(const boost::json::object& object, std::string_view name);
/// Null where there is no object of that name.
[[nodiscard]] const boost::json::object* object_in(const boost::json::object& object, std::string_view name);
/// Empty where there is no array of that name.
[[nodiscard]] const boost::json::array& array_in(const boost::json::object& object, std::string_view name);

}  // namespace holdfast::store::dynamodb
