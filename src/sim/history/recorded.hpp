#pragma once
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/row.hpp"
#include "sim/history/delivery.hpp"
#include "sim/history/linearizability.hpp"
#include "sim/history/operation.hpp"
#include "sim/history/ownership.hpp"
#include "sim/history/verdict.hpp"

namespace holdfast::sim {

/// All that a run has recorded, of whatever kind.
struct Recorded {
  std::map<std::string, Row> initial;  ///< rows that were there before the first operation
  History operations;
  std::vector<Grant> grants;
  std::vector<Belief> beliefs;
  std::vector<Effect> effects;
  std::vector<Produced> produced;
  std::vector<Delivered> delivered;
  std::vector<Gap> gaps;
  std::vector<Enqueued> enqueued;
  std::vector<Dequeued> dequeued;
};

/// One line of JSON each, without its end of line: README.md has the form. Strings must be UTF-8.
[[nodiscard]] std::string to_line(const Row& initial);
[[nodiscard]] std::string to_line(const Operation& operation);
[[nodiscard]] std::string to_line(const Grant& grant);
[[nodiscard]] std::string to_line(const Belief& belief);
[[nodiscard]] std::string to_line(const Effect& effect);
[[nodiscard]] std::string to_line(const Produced& produced);
[[nodiscard]] std::string to_line(const Delivered& delivered);
[[nodiscard]] std::string to_line(const Gap& gap);
[[nodiscard]] std::string to_line(const Enqueued& enqueued);
[[nodiscard]] std::string to_line(const Dequeued& dequeued);

/// Reads such lines, in any order and mixture; empty ones are skipped. Code::corrupt names the line and what is wrong
/// with it: nothing is left out silently. An empty file is corrupt as well: there is nothing to be good about.
[[nodiscard]] Result<Recorded> read_recorded(std::istream& in);

struct NamedVerdict {
  std::string name;  ///< of the check
  Verdict verdict;
  std::string counted;  ///< what was looked at, for people: a check that saw nothing shows as such
};

/// Every check, each on what there is for it. Checkpoints are taken from the operations, and grants, too, where none
/// were recorded.
[[nodiscard]] std::vector<NamedVerdict> judge(const Recorded& recorded, SearchLimits limits = {});

}  // namespace holdfast::sim
