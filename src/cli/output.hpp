#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"

namespace holdfast::cli {

/// Writes to standard output, at once. Fails where the disk is full. Where the reader has gone the process
/// ends, as is the custom (`conn ls | head`).
[[nodiscard]] Result<void> print(std::string_view text);
/// One line on standard error; never fails.
void tell(std::string_view line);
/// `holdfast: <line>` on standard error, whatever is in it made one line.
void complain(std::string_view line);
/// The same of rows that a list leaves out since they are damaged; where there are none, nothing.
void complain_of_damaged(const std::vector<std::string>& rows);

/// Until a time that somebody wrote, by our clock: negative where it is over, and never more than fits into a
/// Duration.
[[nodiscard]] std::chrono::milliseconds time_until(WallTime time, WallTime now);
/// Control characters and line breaks made harmless.
[[nodiscard]] std::string one_line(std::string_view text);

/// Columns for people. Cells are UTF-8, counted in code points; numbers go to the right. What is in a cell stays in
/// it: no line break or other control character of somebody's gets to the terminal, and no cell but the last is
/// endless.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);
  /// Lines without trailing blanks, the titles first. The last column's cells are cut so that lines have at most
  /// `columns_max` characters, if that leaves them 20 at least; 0: nothing is cut.
  [[nodiscard]] std::string render(std::size_t columns_max = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// `*` any run of characters, `?` one, `[a-z]` and `[!a-z]` one out of a set; everything else is itself.
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view text);
/// Whether the pattern can match more than itself.
[[nodiscard]] bool is_glob(std::string_view pattern);

}  // namespace holdfast::cli
