#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdio.h>

#include <boost/json.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/dynamodb_servers.hpp"
#include "support/program.hpp"

namespace holdfast::test {

/// A line of a sink's file.
struct Line {
  std::string file;  ///< one per worker incarnation
  std::string connection;
  std::int64_t epoch = 0;
  std::int64_t seq = 0;
  std::int64_t at_ms = 0;
};

/// Workers and feeds as real processes in a folder of their own, on a SQLite file in it, or on a table of their own.
class Processes : public testing::Test {
 protected:
  static constexpr std::chrono::seconds generous{60};

  /// From here on all processes are on this table, which `holdfast init` makes, until another is named.
  void be_on_dynamodb(const std::string& table, const std::string& endpoint = DynamoDbServer::local().endpoint()) {
    for (const auto& [name, value] : DynamoDbServer::environment()) program.set(name, value);
    store_ = "dynamodb://" + table + "?region=us-east-1&endpoint=" + endpoint;
    program.set("HOLDFAST_STORE", store_);
    const auto made = program.run({"init"});
    ASSERT_EQ(made.code, 0) << made.err;
  }
  /// URL of the table.
  [[nodiscard]] std::string store() const {
    return store_.empty() ? "sqlite:" + program.file("holdfast.db") : store_;
  }

  /// The sink's folder is replaced by something that is none, and is `kept`. In one step, or the sink may make it
  /// again in between.
  void take_sink_away() const {
    program.write("kept", "in the way");
    ASSERT_EQ(
        ::renameat2(AT_FDCWD, program.file("kept").c_str(), AT_FDCWD, program.file("out").c_str(), RENAME_EXCHANGE),
        0);
  }

  runtime::Child start(std::vector<std::string> arguments) {
    auto child = program.start(arguments);
    if (!child) return {};
    return *std::move(child);
  }
  /// The short lease is for those whose lease is to run out; a machine that is busy may let it run out by itself.
  static constexpr const char* short_lease = "2s";
  static constexpr const char* long_lease = "10s";
  runtime::Child worker(const std::string& id, std::vector<std::string> more = {},
                        const std::string& lease = short_lease) {
    std::vector<std::string> arguments{"worker",
                                       "--id",
                                       id,
                                       "--lease",
                                       lease,
                                       "--sink",
                                       "ndjson:out?fsync=never",
                                       "--report",
                                       id + ".json",
                                       "--max-connections",
                                       "50"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(std::move(arguments));
  }
  /// Gives the base URL of its streams.
  std::string feed(std::vector<std::string> more = {}, int streams = 5) {
    std::vector<std::string> arguments{"feed",   "--port", "0",         "--streams", std::to_string(streams),
                                       "--rate", "20",     "--history", "100000"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    feed_ = start(std::move(arguments));
    const auto line = feed_.read_line(generous);
    EXPECT_TRUE(line) << line.error().detail;
    if (!line) return {};
    const std::string text = "listening on ";
    return line->substr(text.size(), line->size() - text.size() - 4);
  }
  void add(const std::string& id, const std::string& url, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"conn", "add", id, "--url", url};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto ended = program.run(arguments);
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  void add_streams(int count, const std::string& base) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "s" + std::to_string(i);
      add(name, base + name, {"--resume-query", "since", "--seq-pointer", "/seq"});
    }
  }
  /// As `conn show --json` has it.
  [[nodiscard]] boost::json::object shown(const std::string& id) {
    boost::system::error_code error;
    auto value = boost::json::parse(program.run({"conn", "show", id, "--json"}).out, error);
    if (error || !value.is_object()) return {};
    return std::move(value.as_object());
  }
  [[nodiscard]] std::string text(const std::string& id, const char* name) {
    const auto object = shown(id);
    const auto* value = object.if_contains(name);
    if (value == nullptr || value->is_null()) return "";
    return value->is_string() ? std::string(value->as_string()) : boost::json::serialize(*value);
  }
  [[nodiscard]] boost::json::object report(const std::string& id) const {
    boost::system::error_code error;
    auto value = boost::json::parse(program.read(id + ".json"), error);
    if (error || !value.is_object()) return {};
    return std::move(value.as_object());
  }

  /// Every whole record written so far.
  [[nodiscard]] std::vector<Line> lines(const std::string& folder = "out") const {
    std::vector<Line> result;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(program.file(folder), ignored)) {
      std::ifstream input(entry.path());
      for (std::string text; std::getline(input, text) && !input.eof();) {
        const auto object = boost::json::parse(text).as_object();
        if (object.contains("gap")) continue;
        result.push_back({entry.path().filename().string(), std::string(object.at("conn").as_string()),
                          object.at("epoch").as_int64(), object.contains("seq") ? object.at("seq").as_int64() : 0,
                          object.at("at_ms").as_int64()});
      }
    }
    return result;
  }
  /// How many connections have a record from a file whose name begins so.
  [[nodiscard]] std::size_t flowing(const std::string& prefix, std::int64_t after_ms = 0) const {
    std::map<std::string, bool> seen;
    for (const Line& line : lines()) {
      if (line.file.starts_with(prefix + "-") && line.at_ms >= after_ms) seen[line.connection] = true;
    }
    return seen.size();
  }
  static std::int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  static bool wait_until(const std::function<bool()>& condition, Duration limit = generous) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return true;
  }

  /// Stops a process at a moment when it does not hold the write lock of the table, so that others can go on: one
  /// that is stopped inside its transaction keeps it (src/store/README.md).
  bool pause(runtime::Child& child) const {
    if (!store_.empty()) {
      child.kill(SIGSTOP);
      return true;
    }
    return wait_until([&] {
      child.kill(SIGSTOP);
      sqlite3* table = nullptr;
      const bool free =
          sqlite3_open_v2(program.file("holdfast.db").c_str(), &table, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
          sqlite3_busy_timeout(table, 500) == SQLITE_OK &&
          sqlite3_exec(table, "BEGIN IMMEDIATE; ROLLBACK", nullptr, nullptr, nullptr) == SQLITE_OK;
      sqlite3_close(table);
      if (!free) child.kill(SIGCONT);
      return free;
    });
  }

  /// From 1 on without a hole, whatever was repeated.
  void expect_no_hole(const std::string& folder = "out") const {
    std::map<std::string, std::map<std::int64_t, int>> seen;
    for (const Line& line : lines(folder)) ++seen[line.connection][line.seq];
    for (const auto& [connection, numbers] : seen) {
      const std::int64_t first = numbers.begin()->first;
      const std::int64_t last = numbers.rbegin()->first;
      EXPECT_EQ(static_cast<std::int64_t>(numbers.size()), last - first + 1) << connection << " has a hole";
    }
  }
  /// S1, S2: nothing under an older epoch after something under a newer one, and one file for each epoch.
  void expect_one_owner_at_a_time(const std::string& folder = "out") const {
    struct Span {
      std::int64_t first = INT64_MAX, last = INT64_MIN;
      std::string file;
    };
    std::map<std::string, std::map<std::int64_t, Span>> spans;
    for (const Line& line : lines(folder)) {
      Span& span = spans[line.connection][line.epoch];
      const std::string incarnation = line.file.substr(0, line.file.rfind('-'));
      EXPECT_TRUE(span.file.empty() || span.file == incarnation) << "two owners of epoch " << line.epoch;
      span.file = incarnation;
      span.first = std::min(span.first, line.at_ms);
      span.last = std::max(span.last, line.at_ms);
    }
    for (const auto& [connection, epochs] : spans) {
      std::int64_t before = INT64_MIN;
      for (const auto& [epoch, span] : epochs) {
        EXPECT_GE(span.first, before) << connection << " under epoch " << epoch;
        before = span.last;
      }
    }
  }

  Program program;
  runtime::Child feed_;

 private:
  std::string store_;  // empty: the SQLite file
};

/// What holds on each store that processes can share.
class ProcessesOnEachStore : public Processes, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (std::string_view(GetParam()) == "dynamodb_local") be_on_dynamodb(random_table_name("processes"));
  }
};
inline auto each_store() {
  return testing::Values("sqlite", "dynamodb_local");
}
inline std::string name_of_store(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace holdfast::test
