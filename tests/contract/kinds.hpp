#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"

namespace holdfast::test {

/// One table, empty at first, that any number of stores can be opened on.
class Table {
 public:
  virtual ~Table() = default;
  [[nodiscard]] virtual std::unique_ptr<Store> open(Loop& loop) = 0;
};

/// A kind of store that has to keep the contract.
struct Kind {
  std::string name;
  std::function<std::unique_ptr<Table>()> make_table;
};

/// Every store there is. A new one joins here, by one line in kinds.cpp, and nowhere else.
[[nodiscard]] std::vector<Kind> all_kinds();

}  // namespace holdfast::test
