#include "cli/connections.hpp"

#include <algorithm>
#include <variant>

#include "cli/output.hpp"
#include "core/lease_write.hpp"
#include "core/number.hpp"
#include "runtime/units.hpp"
#include "store/json.hpp"
#include "worker/stream_options.hpp"

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

// How far the clocks of those who write leases may be from ours before we count one as over.
constexpr auto clock_allowance = 5s;
// Longer leases are allowed, but rare.
constexpr auto far_ahead = 10min;

std::int64_t in_ms(WallTime time) {
  return time.time_since_epoch().count();
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Also where it is no text: somebody meant something by it.
std::string owner_of(const Row& row) {
  const Value* owner = row.find(attribute::owner);
  if (is_absent(owner)) return {};
  return owner->as_string() != nullptr ? *owner->as_string() : store::to_json(*owner);
}

Condition in_state(std::string_view name) {
  return Condition::equals(attribute::desired_state, name);
}

void set_stream(const Attributes& stream, std::vector<Change>& changes) {
  changes.push_back(Change::set(attribute::url, stream.find(attribute::url)->second));
  const auto options = stream.find(attribute::options);
  const bool any =
      options != stream.end() && options->second.as_map() != nullptr && !options->second.as_map()->empty();
  changes.push_back(any ? Change::set(attribute::options, options->second) : Change::remove(attribute::options));
}

// Nothing in it is of a kind that no condition can name.
bool is_readable(const Value& value) {
  if (const Value::List* list = value.as_list()) return std::all_of(list->begin(), list->end(), is_readable);
  if (const Value::Map* map = value.as_map()) {
    return std::all_of(map->begin(), map->end(), [](const auto& item) { return is_readable(item.second); });
  }
  return !std::holds_alternative<Value::Unreadable>(value.data());
}

// The condition that an attribute is what it was when the row was read, as far as it can be read. What cannot be read
// is from no write of ours.
Condition unchanged(const Row& row, std::string_view name) {
  const Value* value = row.find(name);
  if (value == nullptr) return Condition::not_exists(name);
  return is_readable(*value) ? Condition::equals(name, *value) : Condition::exists(name);
}

// The condition that a row's desired state is what it was when it was read.
Condition unmoved(const Row& row) {
  return Condition::row_exists() && unchanged(row, attribute::desired_state);
}

// F21: without a numeric expiry (or a desired state) a row is not in the index, and no worker ever finds it.
bool lacks_expiry(const Row& row) {
  const Value* expiry = row.find(attribute::expires_at);
  return expiry == nullptr || expiry->as_int() == nullptr;
}

// Changes an attribute to what it should be, if it is still as it was seen.
void mend(Step& step, const Row& row, std::string_view name, Value value) {
  step.repaired = true;
  step.update.condition = step.update.condition && unchanged(row, name);
  step.update.changes.push_back(Change::set(name, std::move(value)));
}

// S3: what can be read as a number goes on from it. What is none says nothing about the epochs that were given out:
// the time in milliseconds is above whatever was reached by counting. Nothing where a successor would be too large,
// or where it cannot be read: then no condition could tell that it is still what was seen.
std::optional<std::int64_t> mended_epoch(const Value& seen, WallTime now) {
  if (!is_readable(seen)) return std::nullopt;
  const auto number = whole_number(seen, Fraction::rounded_up);
  const std::string* text = seen.as_string();
  const bool digits = text != nullptr && !text->empty() && std::all_of(text->begin(), text->end(), is_digit);
  const bool too_large = !number && (digits || std::holds_alternative<double>(seen.data()));
  if (too_large || number == INT64_MAX) return std::nullopt;
  return number && *number >= 0 ? *number : in_ms(now);
}

bool lies_far_ahead(const Row& row, WallTime now) {
  return row.number(attribute::expires_at) > in_ms(now + far_ahead);
}

// F21: nobody's, and in the index where no worker looks for a long time: as when somebody took a dead owner out by
// hand.
bool is_out_of_sight(const Row& row, WallTime now) {
  return owner_of(row).empty() && lies_far_ahead(row, now);
}

// Why start() cannot repair a row that no claim can win, as what to do instead; empty: it can.
std::string beyond_repair(const Row& row, WallTime now) {
  const Value* epoch = row.find(attribute::epoch);
  if (!is_absent(epoch) && !mended_epoch(*epoch, now)) return "remove it, and add it under another name";
  const Value* owner = row.find(attribute::owner);
  if (!is_absent(owner) && !is_readable(*owner)) return "remove it, and add it again";
  return {};
}

// F21, and what keeps claims from succeeding (damage_of). An owner becomes a text, so that it stays an owner until
// its lease ends; an expiry that can be read as one is kept, since somebody may hold by it (S1). Of rows that are not
// beyond it.
void repair(Step& step, const Row& row, WallTime now) {
  if (lacks_expiry(row)) {
    const Value* expiry = row.find(attribute::expires_at);
    const auto number = expiry == nullptr ? std::nullopt : whole_number(*expiry, Fraction::rounded_up);
    mend(step, row, attribute::expires_at, number.value_or(0));
  }
  const Value* owner = row.find(attribute::owner);
  if (!is_absent(owner) && owner->as_string() == nullptr) {
    mend(step, row, attribute::owner, owner_of(row));
  }
  if (is_out_of_sight(row, now)) {
    step.update.condition = step.update.condition && unchanged(row, attribute::owner);
    mend(step, row, attribute::expires_at, 0);
  }
  const Value* epoch = row.find(attribute::epoch);
  if (is_absent(epoch)) return;
  const auto mended = mended_epoch(*epoch, now);
  if (mended && Value(*mended) != *epoch) mend(step, row, attribute::epoch, *mended);
}

Step start(const Row& row, WallTime now) {
  Step step{.kind = Step::Kind::write, .update = {row.key, {}, unmoved(row)}, .words = "started"};
  if (row.text(attribute::desired_state) != state::started) {
    step.update.changes.push_back(Change::set(attribute::desired_state, state::started));
  }
  if (row.find(attribute::desired_state) == nullptr) step.repaired = true;
  if (const std::string instead = beyond_repair(row, now); !instead.empty()) {
    return {.kind = Step::Kind::refuse,
            .words = "cannot be claimed by anybody: " + damage_of(row).value_or("") + ": " + instead};
  }
  repair(step, row, now);
  if (step.update.changes.empty()) return {.kind = Step::Kind::nothing, .words = "is started already"};
  return step;
}

Step stop(const Row& row) {
  if (row.text(attribute::desired_state) == state::stopped) {
    return {.kind = Step::Kind::nothing, .words = "is stopped already"};
  }
  Step step{.kind = Step::Kind::write, .update = {row.key, {}, unmoved(row)}, .words = "stopped"};
  step.update.changes = {Change::set(attribute::desired_state, state::stopped),
                         Change::set_if_absent(attribute::expires_at, 0)};
  return step;
}

// S3: the row stays, with its epoch and its lease (whose holder finds out at its next renewal); what it connected
// to, and with which secrets, goes.
Step remove(const Row& row, std::optional<WallTime> forget_at) {
  Step step{.kind = Step::Kind::write, .update = {row.key, {}, unmoved(row)}, .words = "removed"};
  step.update.changes = {Change::set(attribute::desired_state, state::removed),
                         Change::set_if_absent(attribute::expires_at, 0), Change::remove(attribute::url),
                         Change::remove(attribute::options), Change::remove(attribute::last_seq)};
  if (forget_at) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(forget_at->time_since_epoch()).count();
    step.update.changes.push_back(Change::set(attribute::tombstone_expires_at, std::int64_t{seconds}));  // F18
  }
  return step;
}

constexpr std::string_view hidden = "***";

Value::Map shown_headers(const Value::Map& headers) {
  Value::Map shown;
  for (const auto& [name, value] : headers) {
    const std::string* text = value.as_string();
    const bool reference = text != nullptr && (text->starts_with("env:") || text->starts_with("file:"));
    shown.emplace(name, reference ? std::string_view(*text) : hidden);
  }
  return shown;
}

}  // namespace

Result<void> check_id(std::string_view id) {
  if (id.empty()) return fail(Code::usage, "the connection's id is empty: give it a name, such as btc-usd");
  if (id.size() > 200)
    return fail(Code::usage, "the connection's id is longer than 200 bytes: give it a shorter one");
  const auto bad = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7F || std::string_view("*?[]\"\\").find(c) != std::string_view::npos;
  };
  if (std::any_of(id.begin(), id.end(), bad)) {
    return fail(Code::usage, "the connection's id '" + std::string(id) +
                                 "' has a blank, a control character or one of *?[]\"\\ in it: leave those out");
  }
  return {};
}

std::string key_of(std::string_view id) {
  return std::string(key_prefix::connection) + std::string(id);
}

std::optional<std::string> id_of(const Row& row) {
  if (!row.key.starts_with(key_prefix::connection)) return std::nullopt;
  return row.key.substr(key_prefix::connection.size());
}

Update add_connection(std::string_view id, const Attributes& stream, bool stopped, WallTime now) {
  using Compare = Condition::Compare;
  Update update{.key = key_of(id)};
  const auto over = in_ms(now - clock_allowance);
  // One that was removed is taken back only when its last holder is surely gone: it would go on under the new URL
  // with the old last_seq.
  update.condition = Condition::row_missing() ||
                     (in_state(state::removed) && (Condition::absent(attribute::expires_at) ||
                                                   Condition::is(attribute::expires_at, Compare::less, over)));
  update.changes = {Change::set(attribute::desired_state, stopped ? state::stopped : state::started),
                    Change::set(attribute::expires_at, 0), Change::set_if_absent(attribute::epoch, 0)};
  set_stream(stream, update.changes);
  for (const auto name : {attribute::last_seq, attribute::owner, attribute::tombstone_expires_at, attribute::status,
                          attribute::status_reason}) {
    update.changes.push_back(Change::remove(name));
  }
  return update;
}

bool says_as_added(const Row& row, const Update& add) {
  return std::all_of(add.changes.begin(), add.changes.end(), [&](const Change& change) {
    const bool said = change.attribute == attribute::desired_state || change.attribute == attribute::url ||
                      change.attribute == attribute::options;
    const Value* value = row.find(change.attribute);
    return !said ||
           (change.kind == Change::Kind::remove ? value == nullptr : value != nullptr && *value == change.value);
  });
}

Update replace_connection(std::string_view id, const Attributes& stream, bool stopped) {
  Update update{.key = key_of(id), .condition = in_state(state::started) || in_state(state::stopped)};
  set_stream(stream, update.changes);
  if (stopped) update.changes.push_back(Change::set(attribute::desired_state, state::stopped));
  return update;
}

Error explain_add_conflict(std::string_view id, const std::optional<Row>& row, WallTime now) {
  const std::string name(id);
  if (row && row->text(attribute::desired_state) == state::removed) {
    const ConnectionView view = view_of(*row, now);
    const auto wait = time_until(WallTime(std::chrono::milliseconds(view.expires_at_ms)), now) + clock_allowance;
    return {Code::unavailable,
            "connection '" + name + "' was removed, but " + (view.owner.empty() ? "its last owner" : view.owner) +
                " may still hold it: add it again in " + runtime::describe_duration(wait) +
                (lies_far_ahead(*row, now) ? ", or free it with 'holdfast conn release " + name + "'" : "")};
  }
  return {Code::unavailable, "connection '" + name +
                                 "' exists already: change it with --replace, or remove it with " +
                                 "'holdfast conn rm " + name + "' first"};
}

Step step_to(Wanted wanted, const Row& row, std::optional<WallTime> forget_at, WallTime now) {
  if (row.text(attribute::desired_state) == state::removed) {
    if (wanted == Wanted::removed) return {.kind = Step::Kind::nothing, .words = "is removed already"};
    return {.kind = Step::Kind::refuse, .words = "was removed: add it again with 'holdfast conn add'"};
  }
  switch (wanted) {
    case Wanted::started:
      return start(row, now);
    case Wanted::stopped:
      return stop(row);
    case Wanted::removed:
      return remove(row, forget_at);
  }
  return {};
}

Step release(const Row& row, Duration lease, WallTime now) {
  const std::string owner = owner_of(row);
  const WallTime soon = now + std::chrono::ceil<std::chrono::milliseconds>(lease);
  const std::int64_t expiry = row.number(attribute::expires_at);
  const bool lost = is_out_of_sight(row, now);
  if ((owner.empty() && !lost) || expiry == 0) return {.kind = Step::Kind::nothing, .words = "is free already"};
  if (expiry <= in_ms(soon)) {
    return {.kind = Step::Kind::nothing,
            .words = in_ms(now) >= expiry
                         ? "is free already: its lease has ended"
                         : "is left as it is: its lease has " + view_of(row, now).lease_words + ", as is usual"};
  }
  Step step{.kind = Step::Kind::write};
  step.update.key = row.key;
  // The epoch and the number too: a holder whose clock was set back can write the same expiry again, and a late copy
  // of this must not take that promise back (S1, docs/adr/0017).
  step.update.condition = Condition::row_exists() && unchanged(row, attribute::owner) &&
                          unchanged(row, attribute::expires_at) && unchanged(row, attribute::epoch) &&
                          unchanged(row, attribute::renewal);
  step.update.changes = {Change::set(attribute::expires_at, lost ? 0 : in_ms(soon))};
  step.words = lost ? "is free, and workers find it again"
                    : "is free in " + runtime::describe_duration(lease) + ", unless " + owner + " renews it before";
  return step;
}

bool is_far_ahead(const Row& row, WallTime now) {
  return !owner_of(row).empty() && lies_far_ahead(row, now);
}

ConnectionView view_of(const Row& row, WallTime now) {
  ConnectionView view;
  view.id = id_of(row).value_or(row.key);
  view.desired_state = row.text(attribute::desired_state);
  view.url = row.text(attribute::url);
  view.owner = owner_of(row);
  const Value* epoch = row.find(attribute::epoch);
  view.epoch = is_absent(epoch) ? 0 : whole_number(*epoch).value_or(0);
  view.last_seq = last_seq_of(row).value_or(0);
  view.expires_at_ms = row.number(attribute::expires_at);
  if (const auto problem = problem_of(row, view.id, now)) view.problem = problem->words();
  if (view.owner.empty() || view.expires_at_ms == 0) {
    view.owner.clear();
    view.lease_words = lacks_expiry(row) ? "not in the index" : "free";
    return view;
  }
  const auto left = time_until(WallTime(std::chrono::milliseconds(view.expires_at_ms)), now);
  view.lease = left > 0ms ? ConnectionView::Lease::held : ConnectionView::Lease::expired;
  const std::string amount = runtime::describe_duration(left);
  if (view.lease == ConnectionView::Lease::held) {
    view.status = row.text(attribute::status);
    view.reason = row.text(attribute::status_reason);
    view.lease_words = amount + " left";
  } else {
    view.last_status = row.text(attribute::status);
    view.lease_words = "expired " + amount + " ago";
  }
  return view;
}

std::optional<Problem> problem_of(const Row& row, std::string_view id, WallTime now) {
  const std::string name(id);
  const std::string start_it = "'holdfast conn start " + name + "' repairs it";
  const bool wanted = row.text(attribute::desired_state) == state::started;
  if (const auto damage = damage_of(row); damage && wanted) {
    const std::string instead = beyond_repair(row, now);
    return Problem{"cannot be claimed: " + *damage, instead.empty() ? start_it : instead};
  }
  if (lacks_expiry(row) && wanted) return Problem{"workers cannot find it", start_it};
  if (is_out_of_sight(row, now) && wanted) {
    return Problem{"nobody holds it, and no worker looks at it before its lease_expires_at_ms, far in the future",
                   start_it};
  }
  if (is_far_ahead(row, now)) {
    return Problem{"its lease ends far in the future",
                   "if " + owner_of(row) + " is dead, 'holdfast conn release " + name + "' frees it", false};
  }
  if (!last_seq_of(row)) {
    return Problem{"last_seq is " + describe(*row.find(attribute::last_seq)), "set it to a number"};
  }
  return std::nullopt;
}

std::string options_problem_of(const Row& row) {
  if (row.text(attribute::desired_state) == state::removed) return {};
  const auto options = worker::StreamOptions::from_row(row);
  return options ? "" : options.error().detail;
}

bool natural_less(std::string_view left, std::string_view right) {
  std::size_t l = 0;
  std::size_t r = 0;
  const auto digits = [](std::string_view text, std::size_t& at) {
    while (at < text.size() && text[at] == '0') ++at;
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  while (l < left.size() && r < right.size()) {
    if (is_digit(left[l]) && is_digit(right[r])) {
      const std::string_view a = digits(left, l);
      const std::string_view b = digits(right, r);
      if (a.size() != b.size()) return a.size() < b.size();
      if (a != b) return a < b;
    } else {
      if (left[l] != right[r]) return static_cast<unsigned char>(left[l]) < static_cast<unsigned char>(right[r]);
      ++l;
      ++r;
    }
  }
  if (left.size() - l != right.size() - r) return left.size() - l < right.size() - r;
  return left < right;  // s01 and s1 differ all the same
}

void sort_by_id(std::vector<Row>& rows) {
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return natural_less(a.key, b.key); });
}

Value::Map shown_options(const Row& row) {
  const Value* options = row.find(attribute::options);
  if (options == nullptr || options->as_map() == nullptr) return {};
  Value::Map shown;
  for (const auto& [name, value] : *options->as_map()) {
    const bool is_headers = name == "headers";
    if (is_headers && value.as_map() != nullptr) {
      shown.emplace(name, shown_headers(*value.as_map()));
    } else if (is_headers || !worker::StreamOptions::is_option(name)) {
      shown.emplace(name, hidden);
    } else {
      shown.emplace(name, value);
    }
  }
  return shown;
}

Result<ImportLine> parse_import_line(std::string_view line) {
  const auto attributes = store::attributes_from_json(line);
  if (!attributes) return fail(Code::usage, "it is no JSON object: " + attributes.error().detail);
  ImportLine made;
  Row row;
  for (const auto& [name, value] : *attributes) {
    if (name == "id" && value.as_string() != nullptr) {
      made.id = *value.as_string();
    } else if (name == "url" && value.as_string() != nullptr) {
      row.attributes.emplace(attribute::url, value);
    } else if (name == "options" && value.as_map() != nullptr) {
      row.attributes.emplace(attribute::options, value);
    } else if (name == "stopped" && value.as_bool() != nullptr) {
      made.stopped = *value.as_bool();
    } else if (name == "id" || name == "url" || name == "options" || name == "stopped") {
      return fail(Code::usage, "'" + name +
                                   "' is of the wrong type: id and url are texts, options is an object, "
                                   "stopped is true or false");
    } else {
      return fail(Code::usage, "'" + name + "' is unknown: a line has id, url, options and stopped");
    }
  }
  if (const auto checked = check_id(made.id); !checked) return tl::unexpected<Error>(checked.error());
  if (row.find(attribute::url) == nullptr) return fail(Code::usage, "'url' is missing");
  const auto options = worker::StreamOptions::from_row(row);
  if (!options) return tl::unexpected<Error>(options.error());
  made.stream = options->to_row();
  return made;
}

}  // namespace holdfast::cli
