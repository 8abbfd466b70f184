// The report's JSON against the page that describes it.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "holdfast/report.hpp"
#include "support/places.hpp"
#include "support/temporary_folder.hpp"
#include "worker/report.hpp"

namespace holdfast::test {
namespace {

/// Every name of a field, at any depth; those below `but` are values, not fields.
void collect(const boost::json::value& value, const std::set<std::string>& but, std::set<std::string>& names) {
  if (const auto* array = value.if_array()) {
    for (const auto& each : *array) collect(each, but, names);
  }
  const auto* object = value.if_object();
  if (object == nullptr) return;
  for (const auto& [name, inner] : *object) {
    names.emplace(name);
    if (!but.contains(name)) collect(inner, but, names);
  }
}

TEST(ReportPage, describes_every_field_that_is_written) {
  Report report;
  report.losses["drained"] = 1;
  report.store["update"]["applied"] = 1;
  report.capacity["renew"].requests = 1;
  report.failovers.push_back({.connection = "a", .epoch = Epoch{2}, .first_message_ms = 7});
  std::set<std::string> names;
  collect(boost::json::parse(to_json(report)), {"store", "losses", "kinds"}, names);
  ASSERT_TRUE(names.contains("unnumbered") && names.contains("claimed_ms")) << "the report was looked into";

  std::ifstream input(std::string(source_folder) + "/docs/report.md");
  const std::string page(std::istreambuf_iterator<char>(input), {});
  for (const std::string& name : names) {
    const bool whole = page.find("`" + name + "`") != std::string::npos;
    const bool as_part = page.find("." + name + "`") != std::string::npos;
    const bool as_group = page.find("`" + name + ".") != std::string::npos;
    const bool there = whole || as_part || as_group;
    EXPECT_TRUE(there) << "docs/report.md does not say what `" << name << "` is";
  }
}

TEST(Report, says_what_each_kind_of_request_cost_and_all_together) {
  Report report;
  report.started = WallTime(std::chrono::milliseconds(10'000));
  report.ended = WallTime(std::chrono::milliseconds(14'000));
  report.capacity["renew"] = {
      .requests = 8, .attempts = 9, .throttled = 1, .counted = 8, .table_write_units = 8, .index_write_units = 16};
  report.capacity["look"] = {.requests = 2, .attempts = 2, .counted = 2, .index_read_units = 1};
  const auto capacity = boost::json::parse(to_json(report)).at("capacity");
  const auto& renew = capacity.at("kinds").at("renew");
  EXPECT_EQ(renew.at("attempts").to_number<int>(), 9);
  EXPECT_EQ(renew.at("index_write_units").to_number<double>(), 16);
  EXPECT_EQ(renew.at("write_units_per_second").to_number<double>(), 6);
  EXPECT_EQ(renew.at("read_units_per_second").to_number<double>(), 0);
  const auto& total = capacity.at("total");
  EXPECT_EQ(total.at("requests").to_number<int>(), 10);
  EXPECT_EQ(total.at("throttled").to_number<int>(), 1);
  EXPECT_EQ(total.at("table_write_units").to_number<double>(), 8);
  EXPECT_EQ(total.at("index_read_units").to_number<double>(), 1);
  EXPECT_EQ(total.at("write_units_per_second").to_number<double>(), 6);
  EXPECT_EQ(total.at("read_units_per_second").to_number<double>(), 0.25);
}

TEST(Report, has_no_capacity_where_the_store_has_none) {
  EXPECT_TRUE(boost::json::parse(to_json(Report{})).at("capacity").is_null());
}

TEST(Report, that_could_not_be_written_is_found_out_before_it_is_needed) {
  const TemporaryFolder folder;
  EXPECT_TRUE(worker::try_report(folder.file("report.json")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "trying leaves nothing behind";
  EXPECT_FALSE(worker::try_report(folder.file("nowhere/report.json")));
  EXPECT_FALSE(worker::try_report(folder.path().string())) << "a folder";
}

}  // namespace
}  // namespace holdfast::test
