#pragma once
#include <memory>

#include "holdfast/store.hpp"
#include "store/dynamodb/call.hpp"
#include "store/dynamodb/table_url.hpp"

namespace holdfast::store::dynamodb {

/// The contract on one table of a DynamoDB. The caller goes with the store; it must not call back after its own end.
[[nodiscard]] std::unique_ptr<Store> make_dynamodb_store(TableOptions options, std::unique_ptr<Caller> caller,
                                                         Loop& loop);

}  // namespace holdfast::store::dynamodb
