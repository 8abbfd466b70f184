#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "serve/route.hpp"

namespace holdfast::serve {

/// The OpenAPI 3.1 document of these routes, and of the two that are not among them: the health and itself.
[[nodiscard]] boost::json::object openapi(const std::vector<Route>& routes, const std::string& version);

}  // namespace holdfast::serve
