#pragma once
#include <boost/json/value.hpp>

#include "holdfast/row.hpp"

namespace holdfast::serve {

/// Any JSON as what rows hold, and back. What a row holds and has no word in JSON becomes a text that names it.
[[nodiscard]] Value value_from(const boost::json::value& json);
[[nodiscard]] boost::json::value json_from(const Value& value);

}  // namespace holdfast::serve
