#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"
#include "holdfast/row.hpp"
#include "store/dynamodb/names.hpp"

namespace holdfast::store::dynamodb {

/// A row out of an item. Every attribute gets into it under our name for it; one of a type that rows do not have
/// becomes a Value::Unreadable, by itself or deep inside a list or map. Code::corrupt where the item has no key.
[[nodiscard]] Result<Row> row_from_item(const boost::json::object& item, const Names& names);

/// A value as DynamoDB writes it, `{"S":"text"}`, appended. It must be one that check() lets pass.
void write_value(const Value& value, std::string& out);
/// `{"Pk":{"S":"CONN#a"}}`, appended.
void write_key(std::string_view key, const Names& names, std::string& out);
/// A lease's expiry in the table's unit, appended.
void write_expiry(std::int64_t ms, ExpiryUnit unit, std::string& out);
/// `{"N":"12"}`, appended; `digits` is what a number's text may be.
void write_number(std::string_view digits, std::string& out);

}  // namespace holdfast::store::dynamodb
