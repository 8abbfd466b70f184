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
  report.failovers.push_back({.connection = "a", .epoch = Epoch{2}, .first_message_ms = 7});
  std::set<std::string> names;
  collect(boost::json::parse(to_json(report)), {"store", "losses"}, names);
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

TEST(Report, that_could_not_be_written_is_found_out_before_it_is_needed) {
  const TemporaryFolder folder;
  EXPECT_TRUE(worker::try_report(folder.file("report.json")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "trying leaves nothing behind";
  EXPECT_FALSE(worker::try_report(folder.file("nowhere/report.json")));
  EXPECT_FALSE(worker::try_report(folder.path().string())) << "a folder";
}

}  // namespace
}  // namespace holdfast::test
