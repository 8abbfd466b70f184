#pragma once
#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "coord/journal.hpp"
#include "core/coord/stock.hpp"
#include "holdfast/error.hpp"

// What the commands that accept without the store have in common.
namespace holdfast::cli {

void add_journal_file(CLI::App& app, std::string& target);

/// The journal of what is meant for this store.
[[nodiscard]] Result<std::unique_ptr<coord::Journal>> open_journal(const std::string& file, const std::string& store,
                                                                   bool create);

/// SKU=COUNT each.
[[nodiscard]] Result<Basket> basket_from_words(const std::vector<std::string>& words);

}  // namespace holdfast::cli
