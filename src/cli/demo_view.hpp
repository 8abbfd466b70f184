#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/types.hpp"

namespace holdfast::cli {

/// One moment of the demo.
struct DemoPicture {
  struct Worker {
    std::string name;
    std::string note;  ///< "killed", "stopping", …; empty: it works
    std::size_t held = 0;
  };
  std::vector<Worker> workers;
  std::size_t connections = 0;
  std::size_t unowned = 0;
  std::int64_t delivered = 0;
};

/// The picture as lines: a bar per worker, as long as what it holds.
[[nodiscard]] std::vector<std::string> render_picture(const DemoPicture& picture, Duration since_start,
                                                      std::size_t columns, bool colours);

/// Where the demo speaks: events are lines that stay; the picture stands below them and is drawn anew, on a
/// terminal only.
class DemoView {
 public:
  enum class Where { nowhere, standard_output, standard_error };
  DemoView(Where where, bool redraws, bool colours, std::size_t columns)
      : where_(where), redraws_(redraws), colours_(colours), columns_(columns) {}

  void event(Duration since_start, const std::string& words);
  void line(const std::string& words);
  void picture(const DemoPicture& picture, Duration since_start);
  /// The picture goes; what was said stays.
  void clear();

 private:
  void write(const std::string& text);
  [[nodiscard]] std::string erasure();  ///< what takes the picture away

  Where where_;
  bool redraws_;
  bool colours_;
  std::size_t columns_;
  std::size_t drawn_ = 0;  // lines of the picture that stand on the terminal
};

/// `1234567` → `1,234,567`.
[[nodiscard]] std::string with_commas(std::int64_t number);

}  // namespace holdfast::cli
