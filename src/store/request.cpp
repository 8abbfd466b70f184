#include "store/request.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/utf8.hpp"
#include "holdfast/assert.hpp"
#include "store/json.hpp"
#include "store/rows.hpp"

namespace holdfast::store {

namespace {

using Problem = std::optional<Error>;

Error misuse(std::string detail) {
  return {Code::usage, std::move(detail)};
}

Problem check_key(const std::string& key) {
  if (key.empty()) return misuse("a row's key cannot be empty");
  if (key.size() > key_bytes_max) {
    return misuse("the key \"" + key.substr(0, 32) + "…\" has " + std::to_string(key.size()) + " bytes, more than " +
                  std::to_string(key_bytes_max));
  }
  if (!is_utf8(key)) return misuse("a row's key must be UTF-8");
  return std::nullopt;
}

Problem check_value(const Value& value, int depth);

struct ValueChecker {
  int depth;
  Problem operator()(const std::string& text) const {
    return is_utf8(text) ? Problem() : misuse("it holds text that is not UTF-8");
  }
  Problem operator()(double number) const {
    return std::isfinite(number) ? Problem() : misuse("it is not a finite number");
  }
  Problem operator()(const Value::Unreadable& value) const {
    return misuse("it is or holds " + value.what + ", which can be neither read nor written here");
  }
  Problem operator()(const Value::List& list) const {
    for (const Value& item : list) {
      if (Problem problem = check_value(item, depth + 1)) return problem;
    }
    return std::nullopt;
  }
  Problem operator()(const Value::Map& map) const {
    for (const auto& [key, item] : map) {
      if (!is_utf8(key)) return misuse("it holds a name that is not UTF-8");
      if (Problem problem = check_value(item, depth + 1)) return problem;
    }
    return std::nullopt;
  }
  Problem operator()(const auto&) const { return std::nullopt; }
};

Problem check_value(const Value& value, int depth) {
  if (depth > depth_max) return misuse("it nests deeper than " + std::to_string(depth_max) + " levels");
  return std::visit(ValueChecker{depth}, value.data());
}

Problem check_update(const Update& update) {
  if (Problem problem = check_key(update.key)) return problem;
  for (const Change& change : update.changes) {
    if (change.attribute.empty() || !is_utf8(change.attribute)) {
      return misuse("an attribute of " + update.key + " has a name that is empty or not UTF-8");
    }
    if (Problem problem = check_value(change.value, 2)) {
      return misuse("the value for " + change.attribute + " of " + update.key +
                    " cannot be kept: " + problem->detail);
    }
  }
  return std::nullopt;
}

struct Checker {
  Problem operator()(const Get& get) const { return check_key(get.key); }
  Problem operator()(const BatchGet& batch) const {
    for (const std::string& key : batch.keys) {
      if (Problem problem = check_key(key)) return problem;
    }
    return std::nullopt;
  }
  Problem operator()(const Update& update) const { return check_update(update); }
  Problem operator()(const Transact& transact) const {
    if (transact.updates.empty() || transact.updates.size() > updates_max) {
      return misuse("a transaction has 1 to " + std::to_string(updates_max) + " updates, this one has " +
                    std::to_string(transact.updates.size()));
    }
    std::set<std::string_view> keys;
    for (const Update& update : transact.updates) {
      if (Problem problem = check_update(update)) return problem;
      if (!keys.insert(update.key).second) return misuse("a transaction cannot update " + update.key + " twice");
    }
    return std::nullopt;
  }
  Problem operator()(const QueryDue& query) const {
    if (query.limit == 0) return misuse("a page has at least one row");
    if (!query.page.empty() && !position_from(query.page)) return misuse("this is no page token of this store");
    return std::nullopt;
  }
  Problem operator()(const auto&) const { return std::nullopt; }
};

template <std::size_t I = 0>
Answer make_failure(std::size_t kind, Outcome outcome, Error error) {
  if constexpr (I < std::variant_size_v<Answer>) {
    if (kind != I) return make_failure<I + 1>(kind, outcome, std::move(error));
    std::variant_alternative_t<I, Answer> reply;
    reply.outcome = outcome;
    reply.error = std::move(error);
    return reply;
  } else {
    HOLDFAST_ASSERT(false, "every handler has its kind of answer");
    return {};
  }
}

}  // namespace

std::optional<Error> check_value(const Value& value) {
  return check_value(value, 2);  // the row's attributes are the first level
}

bool is_write(const Request& request) {
  return std::holds_alternative<Update>(request) || std::holds_alternative<Transact>(request);
}

std::optional<Error> check(const Request& request) {
  return std::visit(Checker(), request);
}

Answer Operation::failure(Outcome outcome, Error error) const {
  return make_failure(handler.index(), outcome, std::move(error));
}

void Operation::respond(Answer&& answer) {
  HOLDFAST_ASSERT(answer.index() == handler.index(), "an answer fits its question");
  std::visit(
      [&answer]<class T>(Handler<T>& call) {
        // Taken out first: the handler may drop whoever holds this operation.
        const Handler<T> handler_of_this = std::exchange(call, nullptr);
        HOLDFAST_ASSERT(handler_of_this != nullptr, "a handler runs once");
        handler_of_this(std::move(std::get<T>(answer)));
      },
      handler);
}

}  // namespace holdfast::store
