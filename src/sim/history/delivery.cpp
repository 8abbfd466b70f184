#include "sim/history/delivery.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/history/operation.hpp"

namespace holdfast::sim {

namespace {

using Key = std::pair<std::string_view, std::int64_t>;       // connection, seq
using Item = std::pair<std::string_view, std::string_view>;  // connection or group, item

std::string name(std::string_view connection, std::int64_t seq) {
  return std::string(connection) + " seq " + std::to_string(seq);
}

std::string told(const Delivered& record) {
  return name(record.connection, record.seq) + " '" + record.item + "' under epoch " +
         std::to_string(record.epoch.value) + (record.by.empty() ? "" : " by " + record.by) + " at " +
         in_words(record.at);
}

std::string told(const Produced& made) {
  return name(made.connection, made.seq) + " '" + made.item + "', produced at " + in_words(made.at);
}

std::string told(const Gap& gap) {
  return "gap of " + gap.connection + " from " + std::to_string(gap.first) + " to " + std::to_string(gap.last) +
         " under epoch " + std::to_string(gap.epoch.value) + " at " + in_words(gap.at);
}

std::string told(const Enqueued& item) {
  return "'" + item.item + "' was put into " + item.group + " from " + in_words(item.from) + " to " +
         (item.until == Instant::max() ? "no reply" : in_words(item.until));
}

std::string told(const Dequeued& item) {
  return "'" + item.item + "' was delivered from " + item.group + " under epoch " + std::to_string(item.epoch.value) +
         (item.by.empty() ? "" : " to " + item.by) + " at " + in_words(item.at);
}

std::string lines(std::string fault, std::string first, std::string second) {
  return std::move(fault) + "\n  - " + std::move(first) + "\n  - " + std::move(second);
}

class Accounting {
 public:
  Accounting(const std::vector<Produced>& produced, const std::vector<Gap>& gaps)
      : produced_(produced), gaps_(gaps) {}
  Account run(const std::vector<Delivered>& delivered);

 private:
  std::string source_fault();
  std::string record_fault(const Delivered& record);
  std::string missing_fault();
  std::string gap_fault(const std::vector<Delivered>& delivered) const;

  const std::vector<Produced>& produced_;
  const std::vector<Gap>& gaps_;
  std::map<Key, const Produced*> by_key_;
  std::map<Item, const Produced*> by_item_;
  std::map<Key, const Delivered*> latest_;
  std::map<std::pair<std::string_view, Epoch>, const Delivered*> newest_;
  Account account_;
};

Account Accounting::run(const std::vector<Delivered>& delivered) {
  std::string fault = source_fault();
  for (auto record = delivered.begin(); fault.empty() && record != delivered.end(); ++record) {
    fault = record_fault(*record);
  }
  if (fault.empty()) fault = gap_fault(delivered);
  if (fault.empty()) fault = missing_fault();
  account_.produced = produced_.size();
  account_.counted_once = latest_.size();
  if (!fault.empty()) account_.verdict = Verdict::fault(std::move(fault));
  return std::move(account_);
}

std::string Accounting::source_fault() {
  for (const Produced& made : produced_) {
    const auto [number, number_is_new] = by_key_.try_emplace({made.connection, made.seq}, &made);
    if (!number_is_new) return lines("the source gave one number twice", told(*number->second), told(made));
    const auto [item, item_is_new] = by_item_.try_emplace({made.connection, made.item}, &made);
    if (!item_is_new) return lines("the source made one item twice", told(*item->second), told(made));
  }
  return {};
}

std::string Accounting::record_fault(const Delivered& record) {
  const auto made = by_item_.find({record.connection, record.item});
  if (made == by_item_.end()) return "a record is of no item that was produced\n  - " + told(record);
  if (made->second->seq != record.seq) {
    return lines("an item was delivered under another number", told(*made->second), told(record));
  }
  if (record.at < made->second->at) {
    return lines("an item was delivered before it was produced", told(*made->second), told(record));
  }
  const auto [before, is_new] = newest_.try_emplace({record.connection, record.epoch}, &record);
  if (!is_new && record.seq <= before->second->seq) {
    return lines("numbers do not rise under one epoch", told(*before->second), told(record));
  }
  before->second = &record;
  const auto [latest, is_first] = latest_.try_emplace({record.connection, record.seq}, &record);
  if (is_first) return {};
  ++account_.repeats;
  if (record.epoch < latest->second->epoch) {
    return lines("an item was repeated under a lower epoch", told(*latest->second), told(record));
  }
  latest->second = &record;
  return {};
}

/// An epoch that says an item was not to be had, and delivers it, is wrong about one of the two. So is one that says
/// so of what nobody had made by then.
std::string Accounting::gap_fault(const std::vector<Delivered>& delivered) const {
  std::map<std::tuple<std::string_view, Epoch, std::int64_t>, const Delivered*> by_epoch;
  for (const Delivered& record : delivered)
    by_epoch.try_emplace({record.connection, record.epoch, record.seq}, &record);
  for (const Gap& gap : gaps_) {
    if (gap.first > gap.last) return "a gap ends before it begins\n  - " + told(gap);
    for (auto made = by_key_.lower_bound({gap.connection, gap.first});
         made != by_key_.end() && made->first <= Key(gap.connection, gap.last); ++made) {
      if (made->second->at <= gap.at) continue;
      return lines("a gap covers what was produced only later", told(gap), told(*made->second));
    }
    const auto found = by_epoch.lower_bound({gap.connection, gap.epoch, gap.first});
    if (found == by_epoch.end()) continue;
    const auto& [connection, epoch, seq] = found->first;
    if (connection == gap.connection && epoch == gap.epoch && seq <= gap.last) {
      return lines("a gap covers what its own epoch delivered", told(gap), told(*found->second));
    }
  }
  return {};
}

std::string Accounting::missing_fault() {
  std::map<std::string_view, std::vector<std::pair<std::int64_t, std::int64_t>>> covered;
  for (const Gap& gap : gaps_) covered[gap.connection].emplace_back(gap.first, gap.last);
  std::string fault;
  std::size_t missing = 0;
  // Ranges by their first number, each with the furthest end of all up to it.
  for (auto& [connection, ranges] : covered) {
    std::sort(ranges.begin(), ranges.end());
    for (auto range = ranges.begin(); range != ranges.end() && std::next(range) != ranges.end(); ++range) {
      std::next(range)->second = std::max(range->second, std::next(range)->second);
    }
  }
  for (const auto& [key, made] : by_key_) {
    if (latest_.contains(key)) continue;
    const auto ranges = covered.find(key.first);
    if (ranges != covered.end()) {
      // The last range that begins at or before the number.
      const auto after = std::upper_bound(ranges->second.begin(), ranges->second.end(), key.second,
                                          [](std::int64_t seq, const auto& range) { return seq < range.first; });
      if (after != ranges->second.begin() && std::prev(after)->second >= key.second) {
        ++account_.covered;
        continue;
      }
    }
    if (++missing == 1) fault = told(*made);
  }
  if (missing == 0) return {};
  return std::to_string(missing) + " items were never delivered, and no gap covers them; the first:\n  - " + fault;
}

class Fifo {
 public:
  explicit Fifo(const std::vector<Dequeued>& dequeued) : dequeued_(dequeued) {}
  Verdict run(const std::vector<Enqueued>& enqueued);

 private:
  struct Place {
    const Enqueued* put = nullptr;
    const Dequeued* first = nullptr;  // delivery
  };
  struct Reader {                      // what one epoch of one group has got so far
    const Dequeued* newest = nullptr;  // of those, the one whose item's putting in began last
    std::map<std::string_view, const Dequeued*> got;
  };

  std::string order_fault();
  std::string epoch_fault();

  const std::vector<Dequeued>& dequeued_;
  std::map<Item, Place> places_;
};

Verdict Fifo::run(const std::vector<Enqueued>& enqueued) {
  for (const Enqueued& item : enqueued) {
    Place& place = places_[{item.group, item.item}];
    if (place.put != nullptr) {
      return Verdict::fault(lines("an item was put in twice", told(*place.put), told(item)));
    }
    place.put = &item;
  }
  for (const Dequeued& item : dequeued_) {
    const auto place = places_.find({item.group, item.item});
    if (place == places_.end()) {
      return Verdict::fault("an item was delivered that was never put in\n  - " + told(item));
    }
    if (item.at < place->second.put->from) {
      return Verdict::fault(
          lines("an item was delivered before it was put in", told(*place->second.put), told(item)));
    }
    if (place->second.first == nullptr) place->second.first = &item;
  }
  std::string fault = order_fault();
  if (fault.empty()) fault = epoch_fault();
  return fault.empty() ? Verdict::pass() : Verdict::fault(std::move(fault));
}

/// From the last first-delivery to the first: whatever comes later, or never, must not have been put in, for sure,
/// before this one.
std::string Fifo::order_fault() {
  std::map<std::string_view, const Place*> earliest;  // by group: among those later or never, whose reply came first
  const auto note = [&](const Place& place) {
    const Place*& known = earliest[place.put->group];
    if (known == nullptr || place.put->until < known->put->until) known = &place;
  };
  for (const auto& [item, place] : places_) {
    if (place.first == nullptr) note(place);
  }
  std::string fault;
  for (auto item = dequeued_.rbegin(); item != dequeued_.rend(); ++item) {
    const Place& place = places_.at({item->group, item->item});
    if (place.first != &*item) continue;
    const auto known = earliest.find(item->group);
    if (known != earliest.end() && known->second->put->until < place.put->from) {
      const Place& earlier = *known->second;
      fault = lines(
          earlier.first == nullptr ? "an item was passed over" : "an item was delivered before an earlier one",
          told(*earlier.put) + (earlier.first == nullptr ? ", and never delivered" : ", and " + told(*earlier.first)),
          told(*place.put) + ", and " + told(*item));
    }
    note(place);
  }
  return fault;  // the first in the order of deliveries
}

std::string Fifo::epoch_fault() {
  std::map<std::string_view, Epoch> highest;
  std::map<std::pair<std::string_view, Epoch>, Reader> readers;
  for (const Dequeued& item : dequeued_) {
    Epoch& epoch = highest[item.group];
    if (item.epoch < epoch) {
      return "an item was delivered under an epoch below " + std::to_string(epoch.value) + "\n  - " + told(item);
    }
    epoch = item.epoch;
    Reader& reader = readers[{item.group, item.epoch}];
    const auto [before, is_new] = reader.got.try_emplace(item.item, &item);
    if (!is_new) return lines("an item was repeated in one epoch", told(*before->second), told(item));
    const Enqueued& put = *places_.at({item.group, item.item}).put;
    if (reader.newest != nullptr) {
      const Enqueued& newest = *places_.at({item.group, reader.newest->item}).put;
      if (put.until < newest.from) {
        return lines("an epoch went back to an earlier item", told(*reader.newest), told(item));
      }
      if (put.from > newest.from) reader.newest = &item;
    } else {
      reader.newest = &item;
    }
  }
  return {};
}

}  // namespace

Account account(const std::vector<Produced>& produced, const std::vector<Delivered>& delivered,
                const std::vector<Gap>& gaps) {
  return Accounting(produced, gaps).run(delivered);
}

Verdict check_fifo(const std::vector<Enqueued>& enqueued, const std::vector<Dequeued>& dequeued) {
  return Fifo(dequeued).run(enqueued);
}

}  // namespace holdfast::sim
