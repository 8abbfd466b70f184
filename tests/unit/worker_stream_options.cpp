#include "worker/stream_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "runtime/secret.hpp"
#include "worker/resume_template.hpp"

namespace holdfast::worker {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Row row_with(Value::Map options) {
  Row row{"CONN#a", {}};
  row.attributes.emplace("ws_url", "ws://localhost:9/stream");
  row.attributes.emplace("options", std::move(options));
  return row;
}

StreamOptions all_set() {
  StreamOptions options;
  options.url = ws::parse_url("wss://example.org/stream?a=1").value();
  options.resume_query = "since";
  options.resume_inclusive = true;
  options.resume_message = R"({{"from":{next_seq}}})";
  options.seq_pointer = "/data/0/se~1q";
  options.seq_missing = StreamOptions::SeqMissing::drop;
  options.headers = {{"Authorization", "env:TOKEN"}, {"X-Key", "file:/run/key"}};
  options.subprotocols = {"v1", "v2"};
  options.subscribe = {R"({"op":"auth"})", "{resume}", R"({"op":"sub"})"};
  options.silent_after = 90s;
  options.ping_every = 5s;
  options.dead_after = 12500ms;
  options.max_message_bytes = 4096;
  options.ca_file = "/etc/ca.pem";
  return options;
}

TEST(StreamOptions, what_is_written_to_a_row_is_read_back_as_it_was) {
  const StreamOptions options = all_set();
  ASSERT_TRUE(options.check()) << options.check().error().detail;
  const Result<StreamOptions> read = StreamOptions::from_row({"CONN#a", options.to_row()});
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(*read, options);
}

TEST(StreamOptions, defaults_leave_the_options_map_empty) {
  StreamOptions options;
  options.url = ws::parse_url("ws://h/").value();
  EXPECT_EQ(options.to_row().at("options"), Value(Value::Map{}));
}

TEST(StreamOptions, a_row_of_a_plain_worker_without_options_gets_the_defaults) {
  Row row{"CONN#a", {}};
  row.attributes.emplace("ws_url", "ws://localhost/");
  const Result<StreamOptions> read = StreamOptions::from_row(row);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->max_message_bytes, std::size_t{1} << 20U);
  EXPECT_EQ(read->silent_after, 0s);
}

TEST(StreamOptions, sizes_may_be_written_with_a_unit) {
  EXPECT_EQ(StreamOptions::from_row(row_with({{"max_message_bytes", "2MiB"}})).value().max_message_bytes, 2U << 20U);
}

struct Refusal {
  Value::Map options;
  const char* says;
};

TEST(StreamOptions, nonsense_is_refused_with_one_sentence_that_names_the_option) {
  const std::vector<Refusal> refusals = {
      {{{"resume.qeury", "since"}}, "unknown option 'resume.qeury'"},
      {{{"resume.query", 5}}, "'resume.query' must be text"},
      {{{"resume.query", "a=b"}}, "'resume.query' is the plain name"},
      {{{"resume.inclusive", "yes"}}, "'resume.inclusive' must be true or false"},
      {{{"resume.inclusive", true}}, "there is no resume.query"},
      {{{"resume.message", "{seq}"}}, "unknown placeholder {seq}"},
      {{{"resume.message", "{\"op\":1}"}}, "a literal brace is doubled"},
      {{{"resume.message", "a } b"}}, "a lone '}'"},
      {{{"seq.pointer", "seq"}}, "begins with '/'"},
      {{{"seq.pointer", "/a~2"}}, "neither ~0"},
      {{{"seq.pointer", "/a~"}}, "neither ~0"},
      {{{"seq.missing", "drop"}}, "there is no seq.pointer"},
      {{{"seq.pointer", "/a"}, {"seq.missing", "skip"}}, "\"deliver\" or \"drop\""},
      {{{"headers", Value::List{}}}, "'headers' must be a map"},
      {{{"headers", Value::Map{{"Host", "a"}}}}, "sets Host"},
      {{{"headers", Value::Map{{"sec-websocket-KEY", "a"}}}}, "handshake sets itself"},
      {{{"headers", Value::Map{{"A", "x\r\nB: y"}}}}, "line break"},
      {{{"headers", Value::Map{{"A B", "x"}}}}, "no HTTP header"},
      {{{"headers", Value::Map{{"a", "1"}, {"A", "2"}}}}, "twice"},
      {{{"headers", Value::Map{{"A", "env:"}}}}, "names no variable"},
      {{{"subprotocols", "v1"}}, "'subprotocols' must be a list"},
      {{{"subprotocols", Value::List{"a b"}}}, "'subprotocols'"},
      {{{"subprotocols", Value::List{"a", "a"}}}, "a twice"},
      {{{"subscribe", Value::List{1}}}, "'subscribe' must be a list of texts"},
      {{{"subscribe", Value::List{""}}}, "'subscribe' has a message that is empty"},
      {{{"subscribe", Value::List{"{resume}"}}}, "there is no resume.message"},
      {{{"silent_after", "soon"}}, "'silent_after' has a bad value"},
      {{{"silent_after", 30}}, "'silent_after' must be text with a unit"},
      {{{"ping_every", "1ms"}}, "'ping_every' must be between"},
      {{{"ping_every", "30s"}, {"dead_after", "30s"}}, "longer than ping_every"},
      {{{"max_message_bytes", 0}}, "'max_message_bytes' must be between"},
      {{{"max_message_bytes", -1}}, "'max_message_bytes' must be a number"},
      {{{"max_message_bytes", "2GiB"}}, "'max_message_bytes' must be between"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<StreamOptions> read = StreamOptions::from_row(row_with(refusal.options));
    ASSERT_FALSE(read) << refusal.says;
    EXPECT_EQ(read.error().code, Code::usage);
    EXPECT_THAT(read.error().detail, HasSubstr(refusal.says));
    EXPECT_EQ(read.error().detail.find('\n'), std::string::npos);
  }
}

TEST(StreamOptions, a_row_without_url_or_with_a_bad_one_is_refused) {
  EXPECT_FALSE(StreamOptions::from_row({"CONN#a", {}}));
  Row row{"CONN#a", {}};
  row.attributes.emplace("ws_url", "http://example.org/");
  EXPECT_FALSE(StreamOptions::from_row(row));
}

TEST(StreamOptions, errors_never_show_the_value_of_a_header) {
  const Result<StreamOptions> read = StreamOptions::from_row(row_with({{"headers", Value::Map{{"A", "hunter2\n"}}}}));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().detail.find("hunter2"), std::string::npos);
}

TEST(ResumeTemplate, fills_in_numbers_and_id_and_keeps_doubled_braces) {
  const auto parsed = ResumeTemplate::parse(R"({{"op":"resume","id":"{id}","last":{last_seq},"next":{next_seq}}})");
  ASSERT_TRUE(parsed) << parsed.error().detail;
  EXPECT_EQ(parsed->render(41, "a\"b"), R"({"op":"resume","id":"a\"b","last":41,"next":42})");
}

TEST(ResumeTemplate, asks_for_everything_where_nothing_was_received_yet) {
  EXPECT_EQ(ResumeTemplate::parse("{last_seq} {next_seq}")->render(0, "a"), "0 0");
}

TEST(Secret, references_are_resolved_from_the_environment_and_from_files) {
  ::setenv("HOLDFAST_TEST_SECRET", "from env", 1);
  EXPECT_EQ(runtime::resolve_secret("env:HOLDFAST_TEST_SECRET").value(), "from env");
  ::unsetenv("HOLDFAST_TEST_SECRET");
  const std::string path = ::testing::TempDir() + "holdfast_secret_" + std::to_string(::getpid());
  std::ofstream(path) << "from file\r\n";
  EXPECT_EQ(runtime::resolve_secret("file:" + path).value(), "from file");
  ::unlink(path.c_str());
  EXPECT_EQ(runtime::resolve_secret("plain: text").value(), "plain: text");
}

TEST(Secret, a_missing_reference_is_an_error_that_names_it) {
  EXPECT_THAT(runtime::resolve_secret("env:HOLDFAST_NO_SUCH").error().detail, HasSubstr("HOLDFAST_NO_SUCH"));
  EXPECT_EQ(runtime::resolve_secret("file:/no/such/file").error().code, Code::not_found);
  EXPECT_FALSE(runtime::resolve_secret("file:/dev/zero"));
  EXPECT_FALSE(runtime::resolve_secret("file:/dev/null"));
}

}  // namespace
}  // namespace holdfast::worker
