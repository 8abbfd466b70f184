// Standard output: a descriptor that somebody else reads, or does not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "sink/buffered_sink.hpp"
#include "sink/descriptor_output.hpp"
#include "support/eventually.hpp"
#include "support/sink_records.hpp"

namespace holdfast::sink {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::parse_lines;
using test::text_record;
using ::testing::HasSubstr;

Position write_one(Sink& sink, std::int64_t seq, std::string_view data = "data") {
  const Record record = text_record("c", seq, data);
  return sink.write({&record, 1});
}

bool acknowledges(const Sink& sink, Position position) {
  return eventually([&] { return sink.acknowledged() >= position; });
}

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~Pipe() {
    close_reader();
    ::close(ends_[1]);
  }
  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_reader() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }
  [[nodiscard]] std::string read_some() const {
    std::string text(65536, '\0');
    const ssize_t got = ::read(ends_[0], text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  int ends_[2] = {-1, -1};
};

std::unique_ptr<BufferedSink> into(const Pipe& pipe, std::size_t high = 100'000,
                                   std::function<Instant()> clock = {}) {
  BufferedSinkOptions options;
  options.sync = Sync::never;
  options.linger = 0s;
  options.retry = {1ms, 5ms, 1ms};
  options.piece_bytes = DescriptorOutput::pipe_bytes;
  options.high_water_bytes = high;
  options.clock = std::move(clock);
  options.low_water_bytes = high / 4;
  return std::make_unique<BufferedSink>(std::make_unique<DescriptorOutput>(pipe.writer()), options);
}

TEST(StdoutSink, writes_lines_and_acknowledges_them) {
  const Pipe pipe;
  auto sink = into(pipe);
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1)));
  EXPECT_EQ(parse_lines(pipe.read_some()).at(0).seq, 1);
}

TEST(StdoutSink, a_slow_reader_makes_it_behind_and_not_failed) {
  const Pipe pipe;
  auto sink = into(pipe);
  std::int64_t written = 0;
  Position position = 0;
  while (!sink->behind() && written < 10'000) position = write_one(*sink, ++written, std::string(100, 'x'));
  ASSERT_TRUE(sink->behind());
  EXPECT_EQ(sink->failure(), std::nullopt);
  std::string text;
  while (std::count(text.begin(), text.end(), '\n') < written) text += pipe.read_some();
  EXPECT_TRUE(acknowledges(*sink, position));
  EXPECT_TRUE(eventually([&] { return !sink->behind(); }));
  EXPECT_EQ(parse_lines(text).size(), static_cast<std::size_t>(written));
}

TEST(StdoutSink, a_reader_that_is_gone_is_a_failure) {
  Pipe pipe;
  auto sink = into(pipe);
  pipe.close_reader();
  const Position position = write_one(*sink, 1);
  ASSERT_TRUE(eventually([&] { return sink->failure().has_value(); }));
  EXPECT_THAT(sink->failure()->detail, HasSubstr("whoever read it is gone"));
  EXPECT_LT(sink->acknowledged(), position);
  EXPECT_TRUE(eventually([&] { return sink->failed_for_good() && sink->behind(); }));
  sink->close(30s);  // at once: there is nothing to wait for
}

/// Fills the pipe, so that whatever comes next has to wait for a reader.
void fill(const Pipe& pipe) {
  const std::string page(4096, '.');
  const int flags = ::fcntl(pipe.writer(), F_GETFL);
  ASSERT_EQ(::fcntl(pipe.writer(), F_SETFL, flags | O_NONBLOCK), 0);
  while (::write(pipe.writer(), page.data(), page.size()) > 0) {
  }
  ASSERT_EQ(::fcntl(pipe.writer(), F_SETFL, flags), 0);
}

TEST(StdoutSink, s7_what_waits_for_a_reader_is_not_written_any_more_once_its_lease_is_over) {
  const Pipe pipe;
  fill(pipe);
  const auto looks = std::make_shared<std::atomic<int>>(0);  // at the clock: one before each write begins
  auto sink = into(pipe, 100'000, [looks] {
    ++*looks;
    return Instant(100s);
  });
  const auto guard = std::make_shared<LeaseGuard>(Epoch{3}, Instant::max());
  const Record record = text_record("c", 1, "x", &guard);
  const Position position = sink->write({&record, 1});
  sink->flush();
  ASSERT_TRUE(eventually([&] { return *looks > 0; }));
  guard->revoke();  // nobody has read yet, so nothing was written
  ASSERT_TRUE(acknowledges(*sink, position)) << "it does not wait for the reader";
  const Position next = write_one(*sink, 2);
  std::string text;
  while (text.find("\"seq\":2,") == std::string::npos) text += pipe.read_some();
  EXPECT_TRUE(acknowledges(*sink, next));
  EXPECT_EQ(text.find("\"seq\":1,"), std::string::npos);
}

TEST(StdoutSink, s7_a_record_that_was_half_written_when_its_lease_ended_is_not_completed_and_its_line_is_ended) {
  const Pipe pipe;
  auto sink = into(pipe, 1'000'000);
  const auto guard = std::make_shared<LeaseGuard>(Epoch{3}, Instant::max());
  const std::string large(300'000, 'x');  // more than a pipe takes
  const Record record = text_record("c", 1, large, &guard);
  const Position position = sink->write({&record, 1});
  std::string text = pipe.read_some();  // it was begun
  guard->revoke();
  ASSERT_TRUE(acknowledges(*sink, position));
  const Position next = write_one(*sink, 2);
  while (text.find("\"seq\":2,") == std::string::npos) text += pipe.read_some();
  EXPECT_TRUE(acknowledges(*sink, next));
  EXPECT_LT(text.size(), large.size());
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(parse_lines(text.substr(text.find('\n') + 1)).size(), 1U) << "the next one is whole";
}

TEST(StdoutSink, closing_does_not_wait_for_a_reader_that_never_reads) {
  const Pipe pipe;
  auto sink = into(pipe);
  for (int i = 0; i < 2000; ++i) write_one(*sink, i, std::string(100, 'x'));
  sink->close(10ms);
  EXPECT_LT(sink->acknowledged(), 2000U);
}

}  // namespace
}  // namespace holdfast::sink
