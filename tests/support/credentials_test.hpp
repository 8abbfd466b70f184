#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "store/dynamodb/credentials.hpp"
#include "support/fake_http.hpp"
#include "support/fake_surroundings.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::test {

/// The chain on a made-up machine, on virtual time.
struct CredentialsTest : testing::Test {
  using Credentials = store::dynamodb::Credentials;

  CredentialsTest() {
    auto made = std::make_unique<FakeSurroundings>(loop);
    machine = made.get();
    chain = store::dynamodb::standard_chain(loop, http, std::move(made), "eu-west-1");
  }

  Result<Credentials> get(Duration limit = std::chrono::minutes(10)) {
    std::optional<Result<Credentials>> result;
    chain->get(loop.instant() + limit, [&](Result<Credentials> came) { result = std::move(came); });
    EXPECT_FALSE(result) << "answered inside the call";
    EXPECT_TRUE(loop.advance_until([&] { return result.has_value(); })) << "never answered";
    return result ? *result : fail(Code::internal, "(none)");
  }
  std::string error() {
    const auto result = get();
    return result ? "(" + result->provider + ")" : result.error().detail;
  }
  /// A time of the machine's wall clock as AWS writes it.
  [[nodiscard]] std::string in(Duration from_now) const {
    const auto when = std::chrono::floor<std::chrono::seconds>(loop.wall() + from_now);
    const auto day = std::chrono::floor<std::chrono::days>(when);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(when - day);
    char text[64];
    std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                  static_cast<int>(time.seconds().count()));
    return text;
  }
  [[nodiscard]] std::string json(const std::string& id, Duration life = std::chrono::hours(1)) const {
    return R"({"Code":"Success","AccessKeyId":")" + id + R"(","SecretAccessKey":"SECRET-)" + id +
           R"(","Token":"TOKEN-)" + id + R"(","Expiration":")" + in(life) + "\"}";
  }
  [[nodiscard]] std::string xml(const std::string& id, Duration life = std::chrono::hours(1)) const {
    return "<AssumeRoleResponse xmlns=\"x\"><AssumeRoleResult><AssumedRoleUser><Arn>arn</Arn></AssumedRoleUser>"
           "<Credentials><AccessKeyId>" +
           id + "</AccessKeyId><SecretAccessKey>SECRET-" + id +
           "</SecretAccessKey><SessionToken>a&amp;b/+=" + "</SessionToken><Expiration>" + in(life) +
           "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
  }
  void set(const std::string& name, const std::string& value) { machine->variables[name] = value; }
  void config(const std::string& text) { machine->files["/home/me/.aws/config"] = text; }
  void credentials(const std::string& text) { machine->files["/home/me/.aws/credentials"] = text; }
  void no_metadata() { set("AWS_EC2_METADATA_DISABLED", "true"); }

  VirtualLoop loop;
  FakeHttp http{loop};
  FakeSurroundings* machine = nullptr;
  std::unique_ptr<store::dynamodb::CredentialSource> chain;
};

}  // namespace holdfast::test
