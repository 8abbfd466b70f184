#pragma once
#include <memory>

#include "holdfast/store.hpp"
#include "store/dynamodb/call.hpp"
#include "store/dynamodb/table_url.hpp"

namespace holdfast::store::dynamodb {

/// The contract on one table of a DynamoDB. The callers go with the store; they must not call back after their own
/// end. `streams` makes calls of DynamoDB Streams (ClientOptions::target); without it there is no feed of changes.
[[nodiscard]] std::unique_ptr<Store> make_dynamodb_store(TableOptions options, std::unique_ptr<Caller> caller,
                                                         Loop& loop, std::unique_ptr<Caller> streams = nullptr);

}  // namespace holdfast::store::dynamodb
