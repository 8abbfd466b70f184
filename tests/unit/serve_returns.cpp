// Goods whose reservation has expired come back by themselves, or people are told.
#include <gmock/gmock.h>

#include "support/service_test.hpp"

namespace holdfast::serve {
namespace {

using namespace std::chrono_literals;
using Fault = test::FaultyStore::Fault;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using ServeReturns = ServiceTest;

TEST_F(ServeReturns, f20_that_they_cannot_be_returned_is_told_once_and_that_they_can_again) {
  std::vector<std::string> told;
  Server& one =
      start({.id = "here", .version = "1", .complain = [&](std::string_view line) { told.emplace_back(line); }});
  post(one, "/v1/stock/apple/add", R"({"delta":2,"op_id":"1"})");
  ASSERT_EQ(post(one, "/v1/reservations/r", R"({"items":{"apple":2},"ttl":"10s"})").status(), 201);
  loop_.advance(5s);
  EXPECT_THAT(told, IsEmpty());
  one.store.judge = [](const Update* update) { return update == nullptr ? Fault::none : Fault::rejected; };
  loop_.advance(2min);
  EXPECT_THAT(told, ElementsAre(HasSubstr("not returned: there is no such table")));
  one.store.judge = {};
  loop_.advance(1min);
  EXPECT_THAT(told, ElementsAre(HasSubstr("not returned"), HasSubstr("returned again")));
  EXPECT_EQ(get(one, "/v1/reservations/r").text("state"), "expired");
}

}  // namespace
}  // namespace holdfast::serve
