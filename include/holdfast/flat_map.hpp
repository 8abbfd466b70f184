#pragma once
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace holdfast {

/// Values by name, in the order of the names' bytes, as a std::map would hold them, but in one piece of memory: what
/// a row is made of is copied and looked through far more often than it grows. Inserting and erasing in the middle
/// move what stands behind, so many names in no order are put in at once (the constructor that takes a vector).
///
/// Names are unique. Every insertion and erasure invalidates iterators and pointers to values. `T` may be incomplete
/// where FlatMap<T> is named.
template <class T>
class FlatMap {
 public:
  using Item = std::pair<std::string, T>;
  using value_type = Item;
  using const_iterator = typename std::vector<Item>::const_iterator;
  using iterator = const_iterator;  // names must stay in order: values are changed by at() and operator[]

  FlatMap() = default;
  FlatMap(std::initializer_list<Item> items) : FlatMap(std::vector<Item>(items)) {}
  /// In any order; of several with one name the last counts. O(n log n).
  explicit FlatMap(std::vector<Item> items) : items_(std::move(items)) {
    const auto above = [](const Item& left, const Item& right) { return left.first < right.first; };
    std::stable_sort(items_.begin(), items_.end(), above);
    // Backwards, so that unique keeps the last of each name.
    const auto kept = std::unique(items_.rbegin(), items_.rend(),
                                  [](const Item& left, const Item& right) { return left.first == right.first; });
    items_.erase(items_.begin(), kept.base());
  }

  [[nodiscard]] const_iterator begin() const { return items_.begin(); }
  [[nodiscard]] const_iterator end() const { return items_.end(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }

  [[nodiscard]] const_iterator find(std::string_view name) const {
    const auto has_name = [name](const Item& item) { return item.first == name; };
    // Of few, most differ from the wanted one in length already: one by one that is faster than by halves.
    if (items_.size() <= few) return std::find_if(items_.begin(), items_.end(), has_name);
    const const_iterator at = place(name);
    return at != items_.end() && has_name(*at) ? at : items_.end();
  }
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != end(); }
  /// Throws std::out_of_range where there is none of that name.
  [[nodiscard]] const T& at(std::string_view name) const {
    const const_iterator found = find(name);
    if (found == end()) throw std::out_of_range("there is no value of that name");
    return found->second;
  }
  [[nodiscard]] T& at(std::string_view name) { return const_cast<T&>(std::as_const(*this).at(name)); }
  T& operator[](std::string_view name) { return mine(try_emplace(name).first); }

  /// Where it stands, and whether it is new. No effect where the name is there already.
  template <class... Arguments>
  std::pair<iterator, bool> try_emplace(std::string_view name, Arguments&&... arguments) {
    if (const const_iterator found = find(name); found != end()) return {found, false};
    return {items_.emplace(place(name), std::piecewise_construct, std::forward_as_tuple(name),
                           std::forward_as_tuple(std::forward<Arguments>(arguments)...)),
            true};
  }
  template <class Argument>
  std::pair<iterator, bool> emplace(std::string_view name, Argument&& argument) {
    return try_emplace(name, std::forward<Argument>(argument));
  }
  template <class Argument>
  std::pair<iterator, bool> insert_or_assign(std::string_view name, Argument&& argument) {
    const auto [at, is_new] = try_emplace(name, std::forward<Argument>(argument));
    if (!is_new) mine(at) = std::forward<Argument>(argument);
    return {at, is_new};
  }

  iterator erase(const_iterator at) { return items_.erase(at); }
  /// How many of that name there were.
  std::size_t erase(std::string_view name) {
    const const_iterator found = find(name);
    if (found == end()) return 0;
    items_.erase(found);
    return 1;
  }
  void clear() { items_.clear(); }

  friend bool operator==(const FlatMap& left, const FlatMap& right) { return left.items_ == right.items_; }

 private:
  static constexpr std::size_t few = 16;

  /// Of the first name that is not below this one.
  [[nodiscard]] const_iterator place(std::string_view name) const {
    return std::lower_bound(items_.begin(), items_.end(), name,
                            [](const Item& item, std::string_view wanted) { return item.first < wanted; });
  }
  [[nodiscard]] T& mine(const_iterator at) { return items_[static_cast<std::size_t>(at - items_.begin())].second; }

  std::vector<Item> items_;
};

}  // namespace holdfast
