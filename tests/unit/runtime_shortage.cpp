// What a process says when the machine, or a limit on it, has run out.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>

#include "runtime/last_words.hpp"
#include "runtime/regular_file.hpp"
#include "runtime/shortage.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::runtime {
namespace {

using testing::HasSubstr;

TEST(Shortage, names_what_to_raise_and_leaves_other_errors_alone) {
  const auto words = [](const std::exception& thrown) { return shortage(thrown).value_or(Error()).detail; };
  EXPECT_THAT(words(std::system_error(EMFILE, std::generic_category(), "epoll")), HasSubstr("ulimit -n"));
  EXPECT_THAT(words(std::system_error(EAGAIN, std::generic_category(), "thread")), HasSubstr("ulimit -u"));
  EXPECT_THAT(words(std::bad_alloc()), HasSubstr("out of memory"));
  EXPECT_FALSE(shortage(std::runtime_error("oh dear")));
  EXPECT_FALSE(shortage(std::system_error(EINVAL, std::generic_category())));
}

#if !HOLDFAST_SANITIZED
TEST(LastWords, out_of_memory_is_one_line_and_exit_code_1) {
  const auto ask = [] {
    install_last_words();
    volatile std::size_t much = std::numeric_limits<std::size_t>::max() / 4;
    ::operator delete(::operator new(much));
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(1), "^holdfast: out of memory[^\n]*\n$");
}

TEST(LastWords, a_shortage_that_nobody_catches_ends_with_exit_code_1) {
  const auto ask = [] {
    install_last_words();
    const auto make_thread = [] { throw std::system_error(EAGAIN, std::generic_category(), "thread"); };
    [&]() noexcept { make_thread(); }();
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(1), "^holdfast: no thread can be made[^\n]*\n$");
}
#endif

class RegularFile : public testing::Test {
 protected:
  test::TemporaryFolder folder;
  std::string path = folder.file("file");
  static std::string trouble(const Result<std::string>& read) { return read ? "" : read.error().detail; }
};

TEST_F(RegularFile, is_read_whole_up_to_the_limit) {
  for (const std::size_t size : {0U, 1U, 1023U, 1024U}) {
    const std::string text(size, 'x');
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_EQ(read_regular_file(path, "it in", 1024), text);
  }
  std::ofstream(path, std::ios::trunc) << std::string(1025, 'x');
  EXPECT_THAT(trouble(read_regular_file(path, "it in", 1024)), HasSubstr("longer than 1 KiB"));
}

TEST_F(RegularFile, a_pipe_a_device_or_a_folder_is_refused_and_not_waited_for) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (const std::string& other : {path, std::string("/dev/zero"), folder.path().string()})
    EXPECT_THAT(trouble(read_regular_file(other, "it in", 1024)), HasSubstr("it is no regular file")) << other;
  EXPECT_THAT(trouble(read_regular_file(folder.file("none"), "it in", 1024)), HasSubstr("No such file"));
}

TEST_F(RegularFile, its_stamp_changes_with_it) {
  EXPECT_EQ(stamp_of(path), FileStamp());
  std::ofstream(path) << "one";
  const FileStamp before = stamp_of(path);
  EXPECT_EQ(stamp_of(path), before);
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_NE(stamp_of(path), before);
}

}  // namespace
}  // namespace holdfast::runtime
