#pragma once
#include <string>

#include "holdfast/error.hpp"
#include "holdfast/update.hpp"
#include "store/dynamodb/names.hpp"

namespace holdfast::store::dynamodb {

/// Appends what UpdateItem, and each Update of TransactWriteItems, say about one conditional write: members of a JSON
/// object, without its braces: Key, UpdateExpression, ConditionExpression, ExpressionAttributeNames and -Values.
///
/// The condition means to the server what holds() says, the changes what apply() does, but for this: DynamoDB has one
/// type of number, so that 1 and 1.0 are equal and ordered among each other, and an `add` takes a fraction as well.
/// An expiry is compared as expiry_from_number() reads it. That an `add` stays within 64 bits becomes a part of the
/// condition: see adds_past_the_end().
///
/// Code::usage, nothing of use appended, where a name or a value cannot be told to this table.
[[nodiscard]] Result<void> write_update(const Update& update, const Names& names, std::string& out);

/// Whether the update's condition failed on the server for no other reason than that an `add` would go past 64 bits.
/// `row` is the row as it was.
[[nodiscard]] bool adds_past_the_end(const Update& update, const Row& row);

/// Whether doing it twice is not the same as doing it once, as far as the store can see.
[[nodiscard]] bool adds(const Update& update);

}  // namespace holdfast::store::dynamodb
