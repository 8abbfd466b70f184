#include "core/coord/read_procedure.hpp"

#include <utility>
#include <variant>

namespace holdfast {

std::optional<Ask> ReadWork::next(Now now) {
  if (is_over()) return std::nullopt;
  if (tries_.is_over(now)) {
    fail(tries_.failure());
    return std::nullopt;
  }
  if (const auto pause = tries_.pause(now)) {
    pausing_ = true;
    return *pause;
  }
  Ask ask = read(now);
  reads_rows_ = std::holds_alternative<ReadRows>(ask);
  return ask;
}

void ReadWork::on(Answer answer, Now now) {
  if (std::exchange(pausing_, false)) return;
  // A row that is damaged is there: it must not be taken for missing. Of a look the others are told.
  if (reads_rows_ && answer.lacks_damaged()) answer.outcome = Outcome::rejected;
  switch (answer.outcome) {
    case Outcome::rejected:
      return fail({Failure::Kind::rejected, std::move(answer.error)});
    case Outcome::throttled:
    case Outcome::unknown:
      return tries_.failed(std::move(answer.error), now);
    case Outcome::applied:
    case Outcome::conflict:  // is for writes alone
      break;
  }
  tries_.succeeded();
  took(std::move(answer), now);
}

}  // namespace holdfast
