// What an input is known by.
#include "coord/fingerprint.hpp"

#include <gtest/gtest.h>

namespace holdfast::coord {
namespace {

TEST(Fingerprint, equal_documents_have_the_same_however_they_are_written) {
  const std::string of = fingerprint_of(R"({"amount": 1, "to": ["x", {"a": null, "b": 2}]})");
  EXPECT_EQ(of.size(), 64U);
  EXPECT_EQ(fingerprint_of("{\"to\":[\"x\",{\"b\":2.0,\"a\":null}],\n\"amount\":1e0}"), of);
}

TEST(Fingerprint, different_ones_differ) {
  const std::string of = fingerprint_of(R"({"amount": 1})");
  for (const char* other : {R"({"amount": 2})", R"({"amount": "1"})", R"({"Amount": 1})", R"([{"amount": 1}])",
                            R"({"amount": 1.5})", R"({"amount": 1, "to": null})", "", "{}", "[]"}) {
    EXPECT_NE(fingerprint_of(other), of) << other;
  }
  EXPECT_NE(fingerprint_of("{}"), fingerprint_of("[]"));
  EXPECT_NE(fingerprint_of("[1,2]"), fingerprint_of("[2,1]"));
}

TEST(Fingerprint, f24_numbers_that_no_double_tells_apart_differ) {
  EXPECT_NE(fingerprint_of(R"({"account": 12345678901234567890123})"),
            fingerprint_of(R"({"account": 12345678901234567890999})"));
  EXPECT_NE(fingerprint_of("[9007199254740993e0]"), fingerprint_of("[9007199254740992e0]"));
  EXPECT_EQ(fingerprint_of(R"({"a": 9007199254740993, "b": 1})"), fingerprint_of(R"({"b":1,"a":9007199254740993})"));
}

TEST(Fingerprint, f24_what_is_lost_in_reading_is_looked_at_all_the_same) {
  const std::pair<const char*, const char*> different[] = {
      {R"({"amount":4503599627370496.1})", R"({"amount":4503599627370496.4})"},
      {R"({"to":"eve","to":"bob"})", R"({"to":"bob"})"},
      {R"({"to":"eve","\u0074o":"bob"})", R"({"to":"bob"})"},
      {R"([{"a":{"x":1,"x":2}}])", R"([{"a":{"x":2}}])"},
      {"[18446744073709551616]", "[18446744073709551617]"},
      {"[1e400]", "[2e400]"},
      {"[0.1]", "[0.1000000000000000001]"},
      {"[1e-400]", "[0]"},
  };
  for (const auto& [one, other] : different) {
    EXPECT_NE(fingerprint_of(one), fingerprint_of(other)) << one;
    EXPECT_FALSE(is_all_kept(one) && is_all_kept(other)) << one;
  }
  for (const char* same : {"[1.5]", "[15e-1]", "[0.15e1]", "[1.50]", " [ 150E-2 ]"}) {
    EXPECT_EQ(fingerprint_of(same), fingerprint_of("[1.5]")) << same;
    EXPECT_TRUE(is_all_kept(same)) << same;
  }
  EXPECT_TRUE(is_all_kept(R"({"a:1":"12345678901234567890123","b":[-0.0,18446744073709551615,1e300,"\":"]})"));
  EXPECT_EQ(fingerprint_of("[1e22]"), fingerprint_of("[10000000000000000000000]"));
  EXPECT_FALSE(is_all_kept("{"));
}

TEST(Fingerprint, what_is_no_document_counts_byte_by_byte) {
  EXPECT_NE(fingerprint_of("amount 1"), fingerprint_of("amount  1"));
  EXPECT_EQ(fingerprint_of("amount 1"), fingerprint_of("amount 1"));
  // Text that looks like what a document is turned into is not that document.
  EXPECT_NE(fingerprint_of("{\"a\":1"), fingerprint_of("{\"a\":1}"));
}

}  // namespace
}  // namespace holdfast::coord
