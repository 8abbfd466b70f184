#pragma once
#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "store/dynamodb/table_url.hpp"

namespace holdfast::store::dynamodb {

/// What DescribeTable says, as far as it concerns us.
struct TableShape {
  bool is_active = false;
  bool has_index = false;
  bool index_is_active = false;
  bool has_stream = false;
  bool is_on_demand = false;
  /// What makes the table unfit for us, in words that say what to do; nothing where it is as it should be, or only
  /// lacks what can be added.
  std::optional<std::string> misfit;
  /// What is not as was asked for, and does no harm; empty: nothing.
  std::string differs;
};

/// `table` is the answer's member Table (or TableDescription).
[[nodiscard]] TableShape shape_of(const boost::json::object& table, const TableOptions& options);

/// The body of CreateTable, and of the UpdateTable that adds the index, or the stream.
[[nodiscard]] std::string body_of_create(const TableOptions& options);
[[nodiscard]] std::string body_of_add_index(const TableOptions& options, bool on_demand);
[[nodiscard]] std::string body_of_add_stream(const TableOptions& options);

}  // namespace holdfast::store::dynamodb
