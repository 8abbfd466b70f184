#pragma once
#include <string>

#include "store/diagnosis.hpp"

namespace holdfast::store {

// Both wait for the disk, by connections of their own: the file is never opened other than through SQLite.

/// The file, who may do what with it, and how safely it is written.
[[nodiscard]] Diagnosis examine_sqlite(const std::string& path, bool sync_full);

/// Some of all rows, by key. Damaged are also rows whose columns, which the index is made of, are not what the item
/// says.
[[nodiscard]] Reply<Walked> walk_sqlite(const std::string& path, const std::string& from);

}  // namespace holdfast::store
