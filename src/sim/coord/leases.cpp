#include "sim/coord/leases.hpp"

#include <algorithm>
#include <utility>

#include "core/coord/names.hpp"

namespace holdfast::sim::coordinated {
namespace {

bool changed(const Row& before, const Row& after, std::string_view name) {
  const Value* const was = before.find(name);
  const Value* const is = after.find(name);
  return (was == nullptr) != (is == nullptr) || (was != nullptr && !(*was == *is));
}

}  // namespace

std::string Leases::who(std::int16_t process) const {
  if (process < 0) return "somebody";
  return "p" + std::to_string(process) + " (" + stage_.owners[static_cast<std::size_t>(process)] + ")";
}

void Leases::believes(std::int32_t subject, const Node& node, std::shared_ptr<const LeaseGuard> guard) {
  std::vector<Belief>& all = beliefs_[subject];
  std::erase_if(all, [](const Belief& belief) { return !holds(belief); });
  if (!guard->holds(node.own_now())) {
    stage_.broken("S7", who(node.number()) + " is told that it holds although its belief has ended", subject);
  }
  all.push_back({&node, node.number(), std::move(guard)});
  look(subject);
}

void Leases::gone(const Node& node) {
  for (auto& [subject, all] : beliefs_) {
    std::erase_if(all, [&](const Belief& belief) { return belief.node == &node; });
  }
}

void Leases::look() {
  for (const auto& [subject, all] : beliefs_) {
    if (all.size() > 1) look(subject);
  }
}

void Leases::look(std::int32_t subject) {
  if (!stage_.clocks_keep_promise()) return;
  const Belief* other = nullptr;
  for (const Belief& belief : beliefs_[subject]) {
    if (!holds(belief)) continue;
    if (other != nullptr) {
      return stage_.broken("S1",
                           who(other->process) + " under epoch " + std::to_string(other->guard->epoch().value) +
                               " and " + who(belief.process) + " under epoch " +
                               std::to_string(belief.guard->epoch().value) + " believe at once",
                           subject);
    }
    other = &belief;
  }
}

void Leases::wrote(std::int32_t subject, const Write::Left& left, const Origin& origin, Duration skew) {
  const Row& after = *left.after;
  const std::int64_t epoch = after.number(attribute::epoch);
  const std::int64_t epoch_before = left.before == nullptr ? 0 : left.before->number(attribute::epoch);
  if (epoch < epoch_before) stage_.broken("S3", "the epoch falls from " + std::to_string(epoch_before), subject);
  if (epoch > epoch_before) {
    claimed(subject, left.before, after, origin, skew);
  } else if (left.before != nullptr && !left.before->text(attribute::owner).empty()) {
    const std::string_view owner = left.before->text(attribute::owner);
    if (!after.text(attribute::owner).empty() && after.text(attribute::owner) != owner) {
      stage_.broken(
          "S3",
          "one epoch has two owners: " + std::string(owner) + " and " + std::string(after.text(attribute::owner)),
          subject);
    }
    const bool of_the_lease =
        changed(*left.before, after, attribute::owner) || changed(*left.before, after, attribute::expires_at) ||
        changed(*left.before, after, coord::head) || changed(*left.before, after, coord::result);
    const bool is_owner = origin.process >= 0 && stage_.owners[static_cast<std::size_t>(origin.process)] == owner;
    if (of_the_lease && !is_owner) {
      stage_.broken(
          "S2",
          who(origin.process) + " wrote what is " + std::string(owner) + "'s under epoch " + std::to_string(epoch),
          subject);
    }
  }
  look(subject);
}

void Leases::claimed(std::int32_t subject, const Row* before, const Row& after, const Origin& origin, Duration skew) {
  const std::int64_t was = before == nullptr ? 0 : before->number(attribute::epoch);
  if (after.number(attribute::epoch) != was + 1) {
    stage_.broken("S3", "an epoch is left out after " + std::to_string(was), subject);
  }
  if (origin.process < 0 || after.text(attribute::owner) != stage_.owners[static_cast<std::size_t>(origin.process)]) {
    stage_.broken("S2", who(origin.process) + " claims it for somebody else", subject);
  }
  if (before == nullptr || before->text(attribute::owner).empty() || !stage_.clocks_keep_promise()) return;
  // S4: whoever takes it over waits for the expiry and the skew, by a clock that is ahead by half of that at most.
  const WallTime free_from = WallTime(std::chrono::milliseconds(before->number(attribute::expires_at))) +
                             std::chrono::floor<std::chrono::milliseconds>(skew - stage_.wall_error_most());
  if (stage_.true_wall() < free_from) {
    stage_.broken("S1", who(origin.process) + " took it over before its holder's lease and the skew had passed",
                  subject);
  }
}

coord::TaskOptions LeasedScene::draw_task(Random& random) const {
  const Duration lease = stage_.terms().lease;
  coord::TaskOptions options;
  options.terms = stage_.terms();
  options.wait = random.below(3) == 0 ? Duration::zero() : random.between(lease / 10, 2 * lease);
  options.patience = random.between(lease / 4, 2 * lease);
  return options;
}

}  // namespace holdfast::sim::coordinated
