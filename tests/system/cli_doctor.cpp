// `holdfast doctor` on a file, as a user calls it. On DynamoDB: dynamodb_doctor.cpp.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <boost/json.hpp>

#include "support/doctor_report.hpp"
#include "support/program.hpp"

namespace holdfast {
namespace {

using test::DoctorReport;
using test::expect_one_line;
using test::Program;
using testing::HasSubstr;

class CliDoctor : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(program.run({"init"}).code, 0); }
  [[nodiscard]] DoctorReport doctor() { return DoctorReport(program.run({"doctor", "--json"})); }
  void sql(const std::string& text) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(program.file("holdfast.db").c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  Program program;
};

TEST_F(CliDoctor, finds_a_new_table_healthy_and_leaves_nothing_that_anybody_could_claim) {
  ASSERT_EQ(program.run({"conn", "add", "a", "--url", "ws://h/"}).code, 0);
  const auto people = program.run({"doctor"});
  EXPECT_EQ(people.code, 0) << people.out << people.err;
  EXPECT_THAT(people.out, HasSubstr("16 writers on a scratch row one won"));
  EXPECT_THAT(people.out, HasSubstr("1 row, 1 of connections")) << "its own scratch row is none of the table's";
  EXPECT_THAT(people.out, testing::Not(HasSubstr("What to do")));

  const DoctorReport report = doctor();
  EXPECT_EQ(report.code, 0);
  for (const char* check : {"reachable", "permissions", "table", "log", "durability", "exclusion", "rows"}) {
    EXPECT_EQ(report.verdict(check), "ok") << check;
  }
  for (const char* check : {"credentials", "clock", "stream"}) {
    EXPECT_EQ(report.verdict(check), "not applicable") << check;
  }
  const std::string listed = program.run({"conn", "ls", "--all", "--json"}).out;
  EXPECT_EQ(boost::json::parse(listed).as_array().size(), 1U) << listed;
}

TEST_F(CliDoctor, tells_rows_that_the_index_cannot_see_and_damaged_ones_and_their_repair_works) {
  ASSERT_EQ(program.run({"conn", "add", "good", "--url", "ws://h/"}).code, 0);
  sql(R"(INSERT INTO rows(pk, item) VALUES('CONN#blind', '{"desired_state":"STARTED","ws_url":"ws://h/"}'))");
  sql(R"(INSERT INTO rows(pk, item) VALUES('CONN#broken', 'no json'))");
  sql(R"(INSERT INTO rows(pk, item) VALUES('CONN#apart', '{"desired_state":"STARTED","lease_expires_at_ms":0}'))");
  const DoctorReport report = doctor();
  EXPECT_EQ(report.code, 1);
  EXPECT_THAT(report.err, HasSubstr("3 checks failed"));
  EXPECT_THAT(report.advice("row CONN#blind"), HasSubstr("'holdfast conn start blind' repairs it"));
  EXPECT_THAT(report.found("row CONN#broken"), HasSubstr("cannot be read"));
  EXPECT_THAT(report.found("row CONN#apart"), HasSubstr("not what its item says"));

  EXPECT_EQ(program.run({"conn", "start", "blind"}).code, 0);
  sql("DELETE FROM rows WHERE pk IN ('CONN#broken', 'CONN#apart')");
  EXPECT_EQ(doctor().code, 0);
}

TEST_F(CliDoctor, a_file_that_is_missing_or_is_none_of_ours_is_a_finding_and_nothing_is_made) {
  const DoctorReport missing(program.run({"doctor", "--json", "--store", "sqlite:other.db"}));
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.verdict("reachable"), "failed");
  EXPECT_THAT(missing.found("reachable"), HasSubstr("there is no file other.db"));
  EXPECT_EQ(program.read("other.db"), "");
  program.write("text.db", "this is no database, however long it may be, and SQLite says so when it reads it");
  EXPECT_EQ(DoctorReport(program.run({"doctor", "--json", "--store", "sqlite:text.db"})).verdict("reachable"),
            "failed");
}

TEST_F(CliDoctor, a_weaker_durability_is_a_warning_and_no_failure) {
  const DoctorReport report(program.run({"doctor", "--json", "--store", "sqlite:holdfast.db?sync=normal"}));
  EXPECT_EQ(report.code, 0);
  EXPECT_EQ(report.verdict("durability"), "warning");
  EXPECT_NE(report.advice("durability"), "");
}

TEST_F(CliDoctor, refuses_what_makes_no_sense) {
  expect_one_line(program.run({"doctor", "--store", "memory:"}), 2, "memory");
  expect_one_line(program.run({"doctor", "--timeout", "1ms"}), 2, "--timeout");
}

TEST_F(CliDoctor, f30_a_damaged_group_is_told_by_receive_stats_and_doctor_and_the_others_are_given_out) {
  for (const char* attribute : {"lease_expires_at_ms", "head", "lease_epoch"}) {
    SCOPED_TRACE(attribute);
    sql("DELETE FROM rows");
    ASSERT_EQ(program.run({"queue", "send", "q", "g", "lost"}).code, 0);
    sql("UPDATE rows SET item = json_set(item, '$." + std::string(attribute) + "', 'x') WHERE pk = 'QUEUE#q#g'");
    if (attribute == std::string("lease_expires_at_ms")) {
      sql("UPDATE rows SET lease_expires_at_ms = 'x' WHERE pk = 'QUEUE#q#g'");
    }
    expect_one_line(program.run({"queue", "receive", "q", "--wait", "100ms"}), 1, "QUEUE#q#g is damaged");
    const auto stats = program.run({"queue", "stats", "q"});
    EXPECT_EQ(stats.code, 0);
    EXPECT_THAT(stats.err, HasSubstr("damaged: QUEUE#q#g"));
    EXPECT_THAT(program.run({"doctor"}).out, HasSubstr("row QUEUE#q#g"));
    ASSERT_EQ(program.run({"queue", "send", "q", "h", "here"}).code, 0);
    EXPECT_THAT(program.run({"queue", "receive", "q"}).out, HasSubstr("1 here"));
  }
  ASSERT_EQ(program.run({"run", "t", "--", "true"}).code, 0);
  sql("UPDATE rows SET item = json_set(item, '$.lease_epoch', 'x') WHERE pk = 'TASK#t'");
  EXPECT_THAT(program.run({"task", "ls"}).err, HasSubstr("damaged: TASK#t"));
}

}  // namespace
}  // namespace holdfast
