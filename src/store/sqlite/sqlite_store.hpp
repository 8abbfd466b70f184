#pragma once
#include <memory>

#include "holdfast/store.hpp"
#include "store/sqlite/sqlite_table.hpp"

namespace holdfast::store {

/// Opens the file at once, so that what is wrong with it is told at the start. That there is no file or no table
/// yet is no error: initialize() makes them.
[[nodiscard]] Result<std::unique_ptr<Store>> make_sqlite_store(SqliteOptions options, Loop& loop);

}  // namespace holdfast::store
