#include "sim/history/ownership.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "holdfast/row.hpp"

namespace holdfast::sim {

namespace {

std::string span(Instant from, Instant until) {
  return from == until ? "at " + in_words(from) : "from " + in_words(from) + " to " + in_words(until);
}

std::string told(const Grant& grant) {
  return grant.owner + " was given epoch " + std::to_string(grant.epoch.value) + " of " + grant.key + ", " +
         span(grant.from, grant.until);
}

std::string told(const Belief& belief) {
  return belief.owner + " believed in epoch " + std::to_string(belief.epoch.value) + " of " + belief.key + ", " +
         span(belief.from, belief.until);
}

std::string told(const Effect& effect) {
  return effect.by + " under epoch " + std::to_string(effect.epoch.value) + " of " + effect.key + ", " +
         span(effect.from, effect.until) + (effect.what.empty() ? "" : ": " + effect.what);
}

template <class T>
std::string pair(std::string fault, const T& first, const T& second) {
  return std::move(fault) + "\n  - " + told(first) + "\n  - " + told(second);
}

/// Pointers, by key and then by when they were surely over or could first have begun.
template <class T, class Time>
std::vector<const T*> sorted(const std::vector<T>& all, Time time) {
  std::vector<const T*> found;
  found.reserve(all.size());
  for (const T& one : all) found.push_back(&one);
  std::stable_sort(found.begin(), found.end(), [&](const T* left, const T* right) {
    return std::tuple(std::string_view(left->key), time(*left)) <
           std::tuple(std::string_view(right->key), time(*right));
  });
  return found;
}

template <class T>
struct Descent {
  const T* higher;
  const T* lower;
};

/// The first (by its beginning) that came for sure after another of its key with a higher epoch.
template <class T>
std::optional<Descent<T>> first_descent(const std::vector<T>& all) {
  const auto by_start = sorted(all, [](const T& one) { return one.from; });
  const auto by_end = sorted(all, [](const T& one) { return one.until; });
  auto over = by_end.begin();
  const T* highest = nullptr;  // of those over before the current one could begin
  for (const T* current : by_start) {
    if (highest != nullptr && highest->key != current->key) highest = nullptr;
    for (; over != by_end.end() && std::tuple(std::string_view((*over)->key), (*over)->until) <
                                       std::tuple(std::string_view(current->key), current->from);
         ++over) {
      if ((*over)->key != current->key) continue;
      if (highest == nullptr || (*over)->epoch > highest->epoch) highest = *over;
    }
    if (highest != nullptr && highest->epoch > current->epoch) return Descent<T>{highest, current};
  }
  return std::nullopt;
}

bool sets(const Update& update, std::string_view name) {
  return std::any_of(update.changes.begin(), update.changes.end(), [&](const Change& change) {
    return change.attribute == name && change.kind != Change::Kind::remove;
  });
}

}  // namespace

Verdict check_epochs(const std::vector<Grant>& grants) {
  std::map<std::pair<std::string_view, Epoch>, const Grant*> given;
  for (const Grant* grant : sorted(grants, [](const Grant& one) { return one.from; })) {
    const auto [found, is_new] = given.try_emplace({grant->key, grant->epoch}, grant);
    if (is_new) continue;
    return Verdict::fault(found->second->owner == grant->owner
                              ? pair("an epoch was given twice", *found->second, *grant)
                              : pair("an epoch has two owners", *found->second, *grant));
  }
  if (const auto descent = first_descent(grants)) {
    return Verdict::fault(pair("epochs went down", *descent->higher, *descent->lower));
  }
  return Verdict::pass();
}

Verdict check_owners(const std::vector<Grant>& grants, const std::vector<Belief>& beliefs,
                     const std::vector<Effect>& effects) {
  struct Owner {
    std::string_view name;
    std::string told;
  };
  std::map<std::pair<std::string_view, Epoch>, Owner> owners;
  Verdict verdict;
  const auto look = [&](const auto& one, std::string_view name) {
    const auto [known, is_new] = owners.try_emplace({one.key, one.epoch}, Owner{name, told(one)});
    if (is_new || known->second.name == name || !verdict.good()) return;
    verdict = Verdict::fault("an epoch has two owners\n  - " + known->second.told + "\n  - " + told(one));
  };
  for (const Grant& grant : grants) look(grant, grant.owner);
  for (const Belief& belief : beliefs) look(belief, belief.owner);
  for (const Effect& effect : effects) look(effect, effect.by);
  return verdict;
}

Verdict check_one_believer(const std::vector<Belief>& beliefs, const std::vector<Grant>& grants) {
  // Of those that began earlier the one that lasts longest, and the one of another owner that lasts longest.
  const Belief* longest = nullptr;
  const Belief* other = nullptr;
  for (const Belief* belief : sorted(beliefs, [](const Belief& one) { return one.from; })) {
    if (belief->until <= belief->from) continue;
    if (longest != nullptr && longest->key != belief->key) longest = other = nullptr;
    const Belief* rival = longest != nullptr && longest->owner != belief->owner ? longest : other;
    if (rival != nullptr && rival->until > belief->from) {
      return Verdict::fault(pair("two believed at once", *rival, *belief));
    }
    if (longest == nullptr || belief->until > longest->until) {
      if (longest != nullptr && longest->owner != belief->owner) other = longest;
      longest = belief;
    } else if (belief->owner != longest->owner && (other == nullptr || belief->until > other->until)) {
      other = belief;
    }
  }
  std::vector<Effect> last;
  for (const Belief& belief : beliefs) {
    if (belief.until <= belief.from) continue;
    last.push_back({belief.key, belief.owner, belief.epoch, belief.until, belief.until, "the end of a belief"});
  }
  for (const Grant& grant : grants) {
    last.push_back({grant.key, grant.owner, grant.epoch, grant.from, grant.until, "a claim"});
  }
  if (const auto descent = first_descent(last)) {
    return Verdict::fault(
        pair("one believed although a later epoch had been given", *descent->higher, *descent->lower));
  }
  return Verdict::pass();
}

Verdict check_fence(const std::vector<Effect>& effects) {
  if (const auto descent = first_descent(effects)) {
    return Verdict::fault(
        pair("an effect was accepted after one of a higher epoch", *descent->higher, *descent->lower));
  }
  return Verdict::pass();
}

Verdict check_writers(const History& history) {
  for (const Operation& operation : history) {
    if (operation.outcome != Outcome::applied || !operation.update || !operation.row) continue;
    const std::string_view owner = operation.row->text(attribute::owner);
    if (!sets(*operation.update, attribute::last_seq) || owner.empty() || owner == operation.client) continue;
    return Verdict::fault("a checkpoint was written into another's lease\n  - " + in_words(operation));
  }
  return Verdict::pass();
}

std::vector<Grant> grants_in(const History& history) {
  std::vector<Grant> found;
  for (const Operation& operation : history) {
    if (operation.outcome != Outcome::applied || !operation.update || !operation.row) continue;
    if (!sets(*operation.update, attribute::epoch) || operation.row->text(attribute::owner).empty()) continue;
    found.push_back({operation.key,
                     std::string(operation.row->text(attribute::owner)),
                     {operation.row->number(attribute::epoch)},
                     operation.invoked,
                     operation.returned});
  }
  return found;
}

std::vector<Effect> effects_in(const History& history, std::string_view name) {
  std::vector<Effect> found;
  for (const Operation& operation : history) {
    if (operation.outcome != Outcome::applied || !operation.update || !operation.row) continue;
    if (!sets(*operation.update, name) || operation.row->find(attribute::epoch) == nullptr) continue;
    found.push_back({operation.key,
                     operation.client,
                     {operation.row->number(attribute::epoch)},
                     operation.invoked,
                     operation.returned,
                     std::string(name) + " = " + std::to_string(operation.row->number(name))});
  }
  return found;
}

}  // namespace holdfast::sim
