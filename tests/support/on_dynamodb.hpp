#pragma once
#include <gtest/gtest.h>

#include <string>

#include "support/dynamodb_servers.hpp"
#include "support/program.hpp"

namespace holdfast::test {

/// From here on the program works on a new table of that server.
inline void use_dynamodb(Program& program, DynamoDbServer::Kind kind = DynamoDbServer::Kind::local) {
  for (const auto& [name, value] : DynamoDbServer::environment()) program.set(name, value);
  program.set("HOLDFAST_STORE", "dynamodb://" + random_table_name("coord") +
                                    "?region=us-east-1&endpoint=" + DynamoDbServer::of(kind).endpoint());
  const auto made = program.run({"init"});
  ASSERT_EQ(made.code, 0) << made.err;
}

}  // namespace holdfast::test
