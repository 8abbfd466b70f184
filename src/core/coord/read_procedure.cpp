#include "core/coord/read_procedure.hpp"

#include <utility>

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
  return read(now);
}

void ReadWork::on(Answer answer, Now now) {
  if (std::exchange(pausing_, false)) return;
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
