#include "store/dynamodb/table_shape.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "holdfast/row.hpp"
#include "store/dynamodb/members.hpp"

namespace holdfast::store::dynamodb {

namespace {

namespace json = boost::json;

/// "tarefa_id (S)" or "desired_state (S), lease_expires_at_ms (N)".
std::string keys_of(const json::object& of, const json::object& table) {
  std::string hash, range;
  for (const json::value& element : array_in(of, "KeySchema")) {
    if (!element.is_object()) continue;
    const std::string name = text_in(element.get_object(), "AttributeName");
    std::string type;
    for (const json::value& definition : array_in(table, "AttributeDefinitions")) {
      if (definition.is_object() && text_in(definition.get_object(), "AttributeName") == name) {
        type = text_in(definition.get_object(), "AttributeType");
      }
    }
    (text_in(element.get_object(), "KeyType") == "HASH" ? hash : range) = name + " (" + type + ")";
  }
  return range.empty() ? hash : hash + ", " + range;
}

json::object attribute_definition(std::string_view name, const char* type) {
  return {{"AttributeName", name}, {"AttributeType", type}};
}

json::object key_element(std::string_view name, const char* type) {
  return {{"AttributeName", name}, {"KeyType", type}};
}

json::object throughput(const Billing& billing) {
  return {{"ReadCapacityUnits", billing.read_units}, {"WriteCapacityUnits", billing.write_units}};
}

json::object index_of(const TableOptions& options, bool on_demand) {
  const Names& names = options.names;
  json::object index{{"IndexName", options.index},
                     {"KeySchema", json::array{key_element(names.theirs(attribute::desired_state), "HASH"),
                                               key_element(names.theirs(attribute::expires_at), "RANGE")}},
                     {"Projection", {{"ProjectionType", "ALL"}}}};
  if (!on_demand) index.emplace("ProvisionedThroughput", throughput(options.billing));
  return index;
}

json::array definitions(const TableOptions& options) {
  const Names& names = options.names;
  return {attribute_definition(names.key(), "S"), attribute_definition(names.theirs(attribute::desired_state), "S"),
          attribute_definition(names.theirs(attribute::expires_at), "N")};
}

/// A reader of the stream sees from the new row alone whether it is free, or to be started.
json::object stream_specification() {
  return {{"StreamEnabled", true}, {"StreamViewType", "NEW_IMAGE"}};
}

}  // namespace

TableShape shape_of(const json::object& table, const TableOptions& options) {
  TableShape shape;
  shape.is_active = text_in(table, "TableStatus") == "ACTIVE";
  const json::object* billing = object_in(table, "BillingModeSummary");
  shape.is_on_demand = billing != nullptr && text_in(*billing, "BillingMode") == "PAY_PER_REQUEST";
  const json::object* stream = object_in(table, "StreamSpecification");
  shape.has_stream = stream != nullptr && stream->if_contains("StreamEnabled") != nullptr &&
                     stream->at("StreamEnabled") == json::value(true);
  const Names& names = options.names;
  const std::string key = keys_of(table, table);
  if (key != names.key() + " (S)") {
    shape.misfit = "the key of table " + options.table + " is " + key + ", but should be " + names.key() +
                   " (S) alone: if it is a text under another name, say key=NAME in the store's URL, else take " +
                   "another table";
    return shape;
  }
  for (const json::value& value : array_in(table, "GlobalSecondaryIndexes")) {
    if (!value.is_object() || text_in(value.get_object(), "IndexName") != options.index) continue;
    const json::object& index = value.get_object();
    shape.has_index = true;
    const std::string status = text_in(index, "IndexStatus");
    shape.index_is_active = status == "ACTIVE" || status.empty();
    const std::string wanted = std::string(names.theirs(attribute::desired_state)) + " (S), " +
                               std::string(names.theirs(attribute::expires_at)) + " (N)";
    const json::object* projection = object_in(index, "Projection");
    const std::string projects = projection == nullptr ? "" : text_in(*projection, "ProjectionType");
    const std::string name_another = ": name another with index=NAME in the store's URL, or remove it and run " +
                                     std::string("'holdfast init' again");
    if (const std::string keys = keys_of(index, table); keys != wanted) {
      shape.misfit = "the index " + options.index + " of table " + options.table + " is over " + keys +
                     ", but should be over " + wanted + name_another;
    } else if (projects != "ALL") {
      shape.misfit = "the index " + options.index + " of table " + options.table + " projects " + projects +
                     ", but should project ALL attributes" + name_another;
    }
  }
  return shape;
}

std::string body_of_create(const TableOptions& options) {
  json::object body{{"TableName", options.table},
                    {"AttributeDefinitions", definitions(options)},
                    {"KeySchema", json::array{key_element(options.names.key(), "HASH")}},
                    {"GlobalSecondaryIndexes", json::array{index_of(options, options.billing.on_demand)}},
                    {"BillingMode", options.billing.on_demand ? "PAY_PER_REQUEST" : "PROVISIONED"}};
  if (!options.billing.on_demand) body.emplace("ProvisionedThroughput", throughput(options.billing));
  if (options.stream) body.emplace("StreamSpecification", stream_specification());
  return json::serialize(body);
}

std::string body_of_add_index(const TableOptions& options, bool on_demand) {
  return json::serialize(
      json::object{{"TableName", options.table},
                   {"AttributeDefinitions", definitions(options)},
                   {"GlobalSecondaryIndexUpdates", json::array{{{"Create", index_of(options, on_demand)}}}}});
}

std::string body_of_add_stream(const TableOptions& options) {
  return json::serialize(json::object{{"TableName", options.table}, {"StreamSpecification", stream_specification()}});
}

}  // namespace holdfast::store::dynamodb
