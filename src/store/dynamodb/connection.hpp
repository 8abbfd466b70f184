#pragma once
#include <memory>

#include "holdfast/error.hpp"
#include "runtime/http.hpp"
#include "store/dynamodb/call.hpp"
#include "store/dynamodb/surroundings.hpp"
#include "store/dynamodb/table_url.hpp"

namespace holdfast::store::dynamodb {

/// What makes a table's calls, and those of its stream. They share credentials, connections and the budget of
/// retries. Everything on the loop's thread, which must outlive them; they end together.
struct Callers {
  std::unique_ptr<Caller> table, stream;
};

/// Finds out whom to ask for the table and how to sign, as AWS's own tools would, and completes `options` with it:
/// its region, and its endpoint where that is not AWS's own. Waits for the disk. Code::usage says what is missing.
[[nodiscard]] Result<Callers> connect(TableOptions& options, Loop& loop,
                                      std::unique_ptr<runtime::HttpTransport> transport,
                                      std::unique_ptr<Surroundings> surroundings);

}  // namespace holdfast::store::dynamodb
