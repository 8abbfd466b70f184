#include "core/coord/decision.hpp"

#include <algorithm>

#include "core/coord/damage.hpp"
#include "core/coord/names.hpp"

namespace holdfast {

namespace {

Failure no_decision(const std::string& key) {
  return {Failure::Kind::rejected, Error(Code::corrupt, "The row " + key +
                                                            " is there, but holds no decision. Was it written by "
                                                            "something else? Choose another key, or mend the row.")};
}

}  // namespace

std::string proposer_of(std::string name, std::string_view ticket) {
  std::ranges::replace(name, '#', '-');  // what follows the first one is the ticket
  return name + "#" + std::string(ticket);
}

bool is_proposed_under(std::string_view proposer, std::string_view ticket) {
  const std::size_t mark = proposer.find('#');
  return !ticket.empty() && mark != std::string_view::npos && proposer.substr(mark + 1) == ticket;
}

Decide::Decide(std::string_view key, Value proposal, std::string proposer, Instant deadline, Random& random,
               std::string_view ticket)
    : RowProcedure(row_key(key), deadline, random),
      proposal_(std::move(proposal)),
      proposer_(ticket.empty() ? std::move(proposer) : proposer_of(std::move(proposer), ticket)),
      ticket_(ticket) {}

std::string Decide::row_key(std::string_view key) {
  return std::string(coord::decision_prefix) + std::string(key);
}

Decide::Plan Decide::plan(Now now) {
  const Row* row = find(key());
  if (row == nullptr) {
    return std::vector{Update{key(),
                              {Change::set(coord::value, proposal_), Change::set(coord::proposer, proposer_),
                               Change::set(coord::decided_at, now.wall.time_since_epoch().count()),
                               Change::set(attribute::attempt, attempt().to_string())},
                              Condition::row_missing()}};
  }
  std::optional<Decided> decided = decided_in(*row);
  if (!decided) return no_decision(key());
  decided->was_ours = row->text(attribute::attempt) == attempt().to_string() ||
                      (is_proposed_under(decided->proposer, ticket_) && decided->value == proposal_);
  return *std::move(decided);
}

ReadDecision::ReadDecision(std::string_view key, Instant deadline, Random& random)
    : RowProcedure(Decide::row_key(key), deadline, random) {}

ReadDecision::Plan ReadDecision::plan(Now /*now*/) {
  const Row* row = find(key());
  if (row == nullptr) return std::optional<Decided>();
  std::optional<Decided> decided = decided_in(*row);
  if (!decided) return no_decision(key());
  return decided;
}

std::optional<Decided> decided_in(const Row& row) {
  const Value* value = row.find(coord::value);
  if (value == nullptr || damage_in(row)) return std::nullopt;
  Decided decided;
  decided.value = *value;
  decided.proposer = row.text(coord::proposer);
  decided.at = WallTime(std::chrono::milliseconds(row.number(coord::decided_at)));
  return decided;
}

}  // namespace holdfast
