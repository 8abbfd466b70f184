#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "asking.hpp"
#include "kinds.hpp"

namespace holdfast::test {

/// What every store promises, tried on each kind with an empty table of its own. A sentence that fails is a store
/// that cannot be trusted with leases.
class StoreContract : public testing::TestWithParam<Kind> {
 protected:
  StoreContract() { EXPECT_EQ(store_.initialize().outcome, Outcome::applied); }

  Attributes attributes_of(const std::string& key) {
    const RowReply reply = store_.get(key);
    EXPECT_EQ(reply.outcome, Outcome::applied) << reply.error.detail;
    EXPECT_TRUE(reply.value.has_value()) << key;
    return reply.value ? reply.value->attributes : Attributes{};
  }
  bool exists(const std::string& key) { return store_.get(key).value.has_value(); }

  runtime::AsioLoop loop_{1};
  std::unique_ptr<Table> table_ = GetParam().make_table();
  Asking store_{table_->open(loop_), loop_};
};

/// The index's attributes of a row.
inline Attributes due(std::string_view state, std::int64_t expires_at) {
  return {{std::string(attribute::desired_state), state}, {std::string(attribute::expires_at), expires_at}};
}

inline std::vector<std::string> keys_of(const std::vector<Row>& rows) {
  std::vector<std::string> keys;
  for (const Row& row : rows) keys.push_back(row.key);
  return keys;
}

}  // namespace holdfast::test
