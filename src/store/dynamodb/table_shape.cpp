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
  if (!on_demand) index.emplace("ProvisionedThroughput", throughput(options.making.billing.value_or(Billing{})));
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

/// "provisioned with 5 read and 7 write units"; of a table or an index.
std::string units_of(const json::object& of) {
  const json::object* units = object_in(of, "ProvisionedThroughput");
  const auto number = [&](const char* name) {
    const json::value* value = units == nullptr ? nullptr : units->if_contains(name);
    return value == nullptr ? std::string("?") : json::serialize(*value);
  };
  return "provisioned with " + number("ReadCapacityUnits") + " read and " + number("WriteCapacityUnits") +
         " write units";
}

std::string words_of(const Billing& billing) {
  if (billing.on_demand) return "on demand";
  return "provisioned with " + std::to_string(billing.read_units) + " read and " +
         std::to_string(billing.write_units) + " write units";
}

/// What was asked for and is not so. Left as it is: who pays may have had a reason.
std::string other_billing(const json::object& table, const json::object* index, bool is_on_demand,
                          const TableOptions& options) {
  if (!options.making.billing) return {};
  const std::string wanted = words_of(*options.making.billing);
  std::string differs;
  const auto look = [&](const std::string& what, const json::object& of) {
    const std::string is = is_on_demand ? "on demand" : units_of(of);
    if (is == wanted) return;
    differs += (differs.empty() ? "" : ", ") + what + " is " + is;
  };
  look("the table", table);
  if (index != nullptr && !is_on_demand) look("its index", *index);
  if (differs.empty()) return {};
  return "its billing is another than " + wanted + ": " + differs +
         " (left so: 'aws dynamodb update-table' changes it)";
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
  const json::object* our_index = nullptr;
  for (const json::value& value : array_in(table, "GlobalSecondaryIndexes")) {
    if (!value.is_object() || text_in(value.get_object(), "IndexName") != options.index) continue;
    const json::object& index = value.get_object();
    shape.has_index = true;
    our_index = &index;
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
  shape.differs = other_billing(table, our_index, shape.is_on_demand, options);
  return shape;
}

std::string body_of_create(const TableOptions& options) {
  const Billing billing = options.making.billing.value_or(Billing{});
  json::object body{{"TableName", options.table},
                    {"AttributeDefinitions", definitions(options)},
                    {"KeySchema", json::array{key_element(options.names.key(), "HASH")}},
                    {"GlobalSecondaryIndexes", json::array{index_of(options, billing.on_demand)}},
                    {"BillingMode", billing.on_demand ? "PAY_PER_REQUEST" : "PROVISIONED"}};
  if (!billing.on_demand) body.emplace("ProvisionedThroughput", throughput(billing));
  if (options.making.stream) body.emplace("StreamSpecification", stream_specification());
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
