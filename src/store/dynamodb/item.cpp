#include "store/dynamodb/item.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "holdfast/assert.hpp"
#include "store/dynamodb/number.hpp"
#include "store/json.hpp"

namespace holdfast::store::dynamodb {

namespace {

namespace json = boost::json;

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

Value unreadable(std::string_view what) {
  return Value::Unreadable{std::string(what)};
}

Value value_from(const json::value& attribute);

Value list_from(const json::array& array) {
  Value::List list;
  list.reserve(array.size());
  for (const json::value& item : array) list.push_back(value_from(item));
  return list;
}

Value map_from(const json::object& object) {
  Value::Map map;
  for (const auto& [name, item] : object) map.emplace(std::string(name.data(), name.size()), value_from(item));
  return map;
}

/// What we have no type for, by DynamoDB's name of the type.
Value foreign(std::string_view type) {
  if (type == "B") return unreadable("a binary");
  if (type == "SS") return unreadable("a set of texts");
  if (type == "NS") return unreadable("a set of numbers");
  if (type == "BS") return unreadable("a set of binaries");
  return unreadable("a value of an unknown type (" + std::string(type.substr(0, 20)) + ")");
}

/// `{"S":"text"}`: one member, named after its type.
Value value_from(const json::value& attribute) {
  const json::object* object = attribute.if_object();
  if (object == nullptr || object->size() != 1) return unreadable("a value that is none of DynamoDB's");
  const auto& member = *object->begin();
  const std::string_view type(member.key().data(), member.key().size());
  const json::value& value = member.value();
  if (type == "S" && value.is_string()) return view(value.get_string());
  if (type == "N" && value.is_string()) return value_from_number(view(value.get_string()));
  if (type == "BOOL" && value.is_bool()) return value.get_bool();
  if (type == "NULL") return nullptr;
  if (type == "L" && value.is_array()) return list_from(value.get_array());
  if (type == "M" && value.is_object()) return map_from(value.get_object());
  return foreign(type);
}

Value expiry_from(const json::value& attribute, ExpiryUnit unit) {
  const json::object* object = attribute.if_object();
  const json::value* number = object == nullptr ? nullptr : object->if_contains("N");
  if (number == nullptr || !number->is_string()) return value_from(attribute);
  const auto ms = expiry_from_number(view(number->get_string()), unit);
  return ms ? Value(*ms) : value_from(attribute);
}

struct Writer {
  std::string& out;

  void operator()(std::nullptr_t) const { out.append(R"({"NULL":true})"); }
  void operator()(bool value) const { out.append(value ? R"({"BOOL":true})" : R"({"BOOL":false})"); }
  void operator()(std::int64_t value) const { number(value); }
  void operator()(double value) const { number(value); }
  void operator()(const std::string& value) const {
    out.append(R"({"S":)");
    write_json(std::string_view(value), out);
    out.push_back('}');
  }
  void operator()(const Value::List& list) const {
    out.append(R"({"L":[)");
    for (const Value& item : list) {
      if (&item != &list.front()) out.push_back(',');
      write_value(item, out);
    }
    out.append("]}");
  }
  void operator()(const Value::Map& map) const {
    out.append(R"({"M":{)");
    bool first = true;
    for (const auto& [name, item] : map) {
      if (!std::exchange(first, false)) out.push_back(',');
      write_json(std::string_view(name), out);
      out.push_back(':');
      write_value(item, out);
    }
    out.append("}}");
  }
  void operator()(const Value::Unreadable&) const {
    HOLDFAST_ASSERT(false, "what could not be read is never written: check() sees to it");
  }

 private:
  void number(auto value) const {
    out.append(R"({"N":")");
    write_json(value, out);
    out.append(R"("})");
  }
};

}  // namespace

Result<Row> row_from_item(const json::object& item, const Names& names) {
  Row row;
  const json::value* key = item.if_contains(names.key());
  const json::object* typed = key == nullptr ? nullptr : key->if_object();
  const json::value* text = typed == nullptr ? nullptr : typed->if_contains("S");
  if (text == nullptr || !text->is_string()) {
    return fail(Code::corrupt, "an item of the table has no text " + names.key() + " as its key");
  }
  row.key = view(text->get_string());
  const std::string_view expiry = names.theirs(attribute::expires_at);
  for (const auto& [json_name, value] : item) {
    const std::string_view theirs(json_name.data(), json_name.size());
    const auto ours = names.ours(theirs);
    if (!ours) continue;
    row.attributes.emplace(*ours, theirs == expiry ? expiry_from(value, names.expiry_unit()) : value_from(value));
  }
  return row;
}

void write_value(const Value& value, std::string& out) {
  std::visit(Writer{out}, value.data());
}

void write_key(std::string_view key, const Names& names, std::string& out) {
  out.push_back('{');
  write_json(std::string_view(names.key()), out);
  out.append(R"(:{"S":)");
  write_json(key, out);
  out.append("}}");
}

void write_expiry(std::int64_t ms, ExpiryUnit unit, std::string& out) {
  write_number(number_from_expiry(ms, unit), out);
}

void write_number(std::string_view digits, std::string& out) {
  out.append(R"({"N":")").append(digits).append(R"("})");
}

}  // namespace holdfast::store::dynamodb
