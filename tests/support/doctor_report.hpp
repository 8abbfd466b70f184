#pragma once
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

#include "support/program.hpp"

namespace holdfast::test {

/// What `holdfast doctor --json` said.
struct DoctorReport {
  explicit DoctorReport(const Program::Ended& ended) : code(ended.code), out(ended.out), err(ended.err) {
    boost::system::error_code error;
    report = boost::json::parse(out, error);
    EXPECT_FALSE(error) << out << err;
  }
  /// What the check of that name says; empty where there is none.
  [[nodiscard]] std::string verdict(const std::string& check) const { return member(check, "verdict"); }
  [[nodiscard]] std::string found(const std::string& check) const { return member(check, "found"); }
  [[nodiscard]] std::string advice(const std::string& check) const { return member(check, "advice"); }

  int code;
  std::string out, err;
  boost::json::value report;

 private:
  [[nodiscard]] std::string member(const std::string& check, const char* name) const {
    if (!report.is_object()) return {};
    for (const auto& told : report.at("checks").as_array()) {
      if (told.at("check").as_string() != check) continue;
      const auto& value = told.at(name);
      return value.is_string() ? std::string(value.as_string()) : std::string();
    }
    return {};
  }
};

}  // namespace holdfast::test
