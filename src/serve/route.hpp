#pragma once
#include <boost/json/object.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/http_server.hpp"
#include "serve/problem.hpp"
#include "serve/schema.hpp"

namespace holdfast::serve {

struct Desk;

/// One request in the hands of its handler.
class Call {
 public:
  using Names = std::map<std::string, std::string, std::less<>>;
  Call(std::shared_ptr<runtime::HttpExchange> exchange, Names path, Input query, Input body)
      : exchange_(std::move(exchange)), path_(std::move(path)), query_(std::move(query)), body_(std::move(body)) {}

  /// What stands in the path where its template says {name}.
  [[nodiscard]] const std::string& path(std::string_view name) const { return path_.find(name)->second; }
  [[nodiscard]] const Input& query() const { return query_; }
  [[nodiscard]] const Input& body() const { return body_; }
  /// Of which it is, as it says itself (Invocations::header); empty: it says nothing.
  [[nodiscard]] std::string invocation() const;

  /// One of these, once. `sent`: see HttpExchange::answer().
  void answer(int status, const boost::json::object& body, const std::string& location = {},
              std::function<void(bool was_sent)> sent = {}) const;
  void fail(const Problem& problem) const { exchange_->answer(answer_of(problem)); }
  void fail(const Failure& failure) const { fail(problem_of(failure)); }
  void on_hang_up(std::function<void()> called) const { exchange_->on_hang_up(std::move(called)); }

 private:
  const std::shared_ptr<runtime::HttpExchange> exchange_;
  const Names path_;
  const Input query_, body_;
};
using CallPtr = std::shared_ptr<const Call>;

/// One line of the table that requests are served by and the OpenAPI document is written from.
struct Route {
  struct Answer {
    int status = 200;
    std::string_view about;
    Schema schema;
  };
  struct Refusal {
    int status = 409;
    std::string_view code;
    std::string_view about;
  };
  std::string_view method;     ///< GET or POST
  std::string_view path;       ///< /v1/tasks/{task}/acquire
  std::string_view operation;  ///< its name in the document
  std::string_view about;
  Schema body;  ///< of a POST
  std::vector<Field> query;
  std::vector<Answer> answers;
  std::vector<Refusal> refusals;  ///< besides those that all have
  void (*handler)(Desk& desk, const CallPtr& call);
};

/// All there are, but for the document and the health.
[[nodiscard]] std::vector<Route> all_routes();
[[nodiscard]] std::vector<Route> task_routes();
[[nodiscard]] std::vector<Route> once_routes();
[[nodiscard]] std::vector<Route> number_routes();
[[nodiscard]] std::vector<Route> queue_routes();
[[nodiscard]] std::vector<Route> ticket_routes();
[[nodiscard]] std::vector<Route> look_routes();

}  // namespace holdfast::serve
