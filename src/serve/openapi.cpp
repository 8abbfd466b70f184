#include "serve/openapi.hpp"

#include <boost/json/array.hpp>

#include "holdfast/assert.hpp"
#include "runtime/units.hpp"

namespace holdfast::serve {

namespace {

namespace json = boost::json;
using Type = Field::Type;

json::object reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

class Document {
 public:
  [[nodiscard]] json::object schema_of(const Field& field) {
    json::object schema = plain(field);
    schema["description"] = field.about;
    if (!field.otherwise.empty()) {
      schema["default"] = field.type == Type::integer   ? json::value(std::stoll(std::string(field.otherwise)))
                          : field.type == Type::boolean ? json::value(field.otherwise == "true")
                                                        : json::value(field.otherwise);
    }
    return schema;
  }

  /// Its reference; the schema itself goes among the components.
  [[nodiscard]] json::object use(const Schema& schema) {
    if (schemas.contains(schema.name)) return reference(schema.name);
    json::object object{{"type", "object"}, {"description", schema.about}, {"additionalProperties", false}};
    json::object properties;
    json::array required;
    for (const Field& field : schema.fields) {
      properties[field.name] = schema_of(field);
      if (field.is_required) required.emplace_back(field.name);
    }
    object["properties"] = std::move(properties);
    if (!required.empty()) object["required"] = std::move(required);
    schemas[schema.name] = std::move(object);
    return reference(schema.name);
  }

  json::object schemas;

 private:
  [[nodiscard]] static json::object sized(json::object schema, const Field& field, const char* least,
                                          const char* most) {
    if (field.least != 0) schema[least] = field.least;
    if (field.most != INT64_MAX) schema[most] = field.most;
    return schema;
  }

  /// JSON Schema has no bounds for what is text: they are extensions, and written as a duration is.
  [[nodiscard]] static json::object bounded(const Field& field) {
    const auto written = [](std::int64_t ms) { return runtime::write_duration(std::chrono::milliseconds(ms)); };
    json::object schema{{"type", "string"},
                        {"format", "duration-with-unit"},
                        {"pattern", "^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h|d)|0)$"}};
    if (field.least != 0) schema["x-minimum"] = written(field.least);
    if (field.most != INT64_MAX) schema["x-maximum"] = written(field.most);
    return schema;
  }

  [[nodiscard]] json::object plain(const Field& field) {
    switch (field.type) {
      case Type::text: {
        if (field.words.empty()) return sized({{"type", "string"}}, field, "minLength", "maxLength");
        json::array words;
        for (const std::string_view word : field.words) words.emplace_back(word);
        return {{"type", "string"}, {"enum", std::move(words)}};
      }
      case Type::duration:
        return bounded(field);
      case Type::integer:
        if (field.least == INT64_MIN) return {{"type", "integer"}, {"format", "int64"}};
        return sized({{"type", "integer"}, {"format", "int64"}, {"minimum", field.least}}, field, "minimum",
                     "maximum");
      case Type::boolean:
        return {{"type", "boolean"}};
      case Type::any:
        return {};
      case Type::counts:
        return sized({{"type", "object"},
                      {"propertyNames", {{"minLength", 1}, {"maxLength", name_most}}},
                      {"additionalProperties", {{"type", "integer"}, {"format", "int64"}, {"minimum", 1}}}},
                     field, "minProperties", "maxProperties");
      case Type::object:
        if (!field.may_be_null) return use(*field.of);
        return {{"oneOf", {use(*field.of), {{"type", "null"}}}}};
      case Type::list:
        return {{"type", "array"}, {"items", field.of ? use(*field.of) : json::object{{"type", "string"}}}};
    }
    HOLDFAST_ASSERT(false, "every type is one of these");
    return {};
  }
};

json::object content(const char* type, json::object schema) {
  return {{type, {{"schema", std::move(schema)}}}};
}

json::object problem_schema() {
  return {{"type", "object"},
          {"description", "what went wrong (RFC 9457)"},
          {"required", {"type", "title", "status", "code", "detail"}},
          {"additionalProperties", false},
          {"properties",
           {{"type", {{"type", "string"}, {"format", "uri-reference"}}},
            {"title", {{"type", "string"}}},
            {"status", {{"type", "integer"}}},
            {"code", {{"type", "string"}, {"description", "the word that programs decide by"}}},
            {"detail", {{"type", "string"}, {"description", "for people: what happened and what to do"}}},
            {"member", {{"type", "string"}, {"description", "of the request, as a JSON pointer"}}}}}};
}

/// The names in the braces of a path.
std::vector<std::string> names_in(std::string_view path) {
  std::vector<std::string> names;
  for (std::size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    names.emplace_back(path.substr(at + 1, path.find('}', at) - at - 1));
  }
  return names;
}

json::array parameters(Document& document, const Route& route) {
  json::array all;
  for (const std::string& name : names_in(route.path)) {
    all.push_back({{"name", name},
                   {"in", "path"},
                   {"required", true},
                   {"schema", {{"type", "string"}, {"minLength", 1}, {"maxLength", name_most}}}});
  }
  for (const Field& field : route.query) {
    all.push_back({{"name", field.name},
                   {"in", "query"},
                   {"required", field.is_required},
                   {"description", field.about},
                   {"schema", document.schema_of(field)}});
  }
  return all;
}

json::object responses(Document& document, const Route& route) {
  json::object all;
  for (const Route::Answer& answer : route.answers) {
    all[std::to_string(answer.status)] = {{"description", answer.about},
                                          {"content", content("application/json", document.use(answer.schema))}};
  }
  for (const Route::Refusal& refusal : route.refusals) {
    json::value& there = all[std::to_string(refusal.status)];
    const std::string line = std::string(refusal.code) + ": " + std::string(refusal.about);
    if (there.is_object()) {
      const json::string& before = there.get_object()["description"].get_string();
      there.get_object()["description"] = std::string(before.data(), before.size()) + "; " + line;
      continue;
    }
    there = {{"description", line}, {"content", content("application/problem+json", reference("Problem"))}};
  }
  all["default"] = {{"$ref", "#/components/responses/Problem"}};
  return all;
}

json::object open_get(const char* operation, const char* about, json::object schema) {
  return {{"get",
           {{"operationId", operation},
            {"summary", about},
            {"security", json::array()},
            {"responses",
             {{"200", {{"description", "it is here"}, {"content", content("application/json", std::move(schema))}}},
              {"default", {{"$ref", "#/components/responses/Problem"}}}}}}}};
}

}  // namespace

json::object openapi(const std::vector<Route>& routes, const std::string& version) {
  Document document;
  json::object paths;
  for (const Route& route : routes) {
    json::object operation{{"operationId", route.operation}, {"summary", route.about}};
    json::array all = parameters(document, route);
    if (!all.empty()) operation["parameters"] = std::move(all);
    if (route.method == "POST") {
      operation["requestBody"] = {{"required", true},
                                  {"content", content("application/json", document.use(route.body))}};
    }
    operation["responses"] = responses(document, route);
    json::value& path = paths[route.path];
    if (!path.is_object()) path = json::object();
    path.get_object()[route.method == "POST" ? "post" : "get"] = std::move(operation);
  }
  const Schema health{"Health",
                      "this process",
                      {{.name = "status", .about = "how it is", .is_required = true, .words = {"ok", "draining"}},
                       {.name = "guards", .type = Type::integer, .about = "held for callers", .is_required = true},
                       {.name = "store", .about = "the table that it works on", .is_required = true}}};
  paths["/healthz"] = open_get("health", "Whether this process serves", document.use(health));
  paths["/openapi.json"] = open_get("document", "This document", {{"type", "object"}});
  document.schemas["Problem"] = problem_schema();
  return {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Holdfast"},
        {"version", version},
        {"summary", "Exclusive rights, once, decisions, counters, stock and ordered queues over HTTP"}}},
      {"security", json::array{json::object(), {{"token", json::array()}}}},
      {"paths", std::move(paths)},
      {"components",
       {{"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}},
        {"responses",
         {{"Problem",
           {{"description",
             "what every route can answer: 400 the request is wrong, 401 the token is, 404 there is no such path, "
             "405 no such method, 413 and 431 it is too large, 415 it is no JSON, 421 the host's name is wrong, "
             "503 the store cannot be reached (unavailable: nothing happened; unknown: it may have), or this "
             "server is stopping (draining) or has too much to do (overloaded)"},
            {"content", content("application/problem+json", reference("Problem"))}}}}},
        {"schemas", std::move(document.schemas)}}}};
}

}  // namespace holdfast::serve
