#include "store/dynamodb/names.hpp"

#include <utility>

namespace holdfast::store::dynamodb {

Result<Names> Names::make(std::string key, Renamed renamed, ExpiryUnit unit) {
  Names names;
  names.key_ = std::move(key);
  names.unit_ = unit;
  for (auto& [ours, theirs] : renamed) {
    if (theirs == names.key_) {
      return fail(Code::usage, "the table's key and its " + ours + " cannot both be called " + theirs);
    }
    const auto [taken, is_new] = names.ours_.emplace(theirs, ours);
    if (!is_new) return fail(Code::usage, taken->second + " and " + ours + " cannot both be called " + theirs);
  }
  names.theirs_ = std::move(renamed);
  std::erase_if(names.theirs_, [](const auto& name) { return name.first == name.second; });
  std::erase_if(names.ours_, [](const auto& name) { return name.first == name.second; });
  return names;
}

std::string_view Names::theirs(std::string_view ours) const {
  const auto found = theirs_.find(ours);
  return found == theirs_.end() ? ours : std::string_view(found->second);
}

std::optional<std::string_view> Names::ours(std::string_view theirs) const {
  if (theirs == key_) return std::nullopt;
  if (const auto found = ours_.find(theirs); found != ours_.end()) return found->second;
  if (theirs_.contains(theirs)) return std::nullopt;
  return theirs;
}

std::optional<Error> Names::refusal(std::string_view ours) const {
  if (theirs_.contains(ours)) return std::nullopt;
  const std::string name(ours);
  if (ours == key_) return Error(Code::usage, "no attribute can be called " + name + ": that is the table's key");
  const auto taken = ours_.find(ours);
  if (taken == ours_.end()) return std::nullopt;
  return Error(Code::usage, "no attribute can be called " + name + ": that is what the table calls " + taken->second);
}

}  // namespace holdfast::store::dynamodb
