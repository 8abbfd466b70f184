#include "store/dynamodb/context.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "store/dynamodb/members.hpp"
#include "store/json.hpp"

namespace holdfast::store::dynamodb {

void Context::call(Call call, Instant deadline, std::function<void(CallReply)> handler) {
  caller->call(std::move(call), deadline, [self = shared_from_this(), handler = std::move(handler)](CallReply reply) {
    if (!self->closed) handler(std::move(reply));
  });
}

void Context::later(Duration delay, std::function<void()> task) {
  const auto unless_closed = [self = shared_from_this(), task = std::move(task)] {
    if (!self->closed) task();
  };
  if (delay == Duration::zero()) return loop.post(unless_closed);
  loop.call_after(delay, unless_closed);
}

std::string begin_body(const TableOptions& options) {
  std::string body = R"({"TableName":)";
  write_json(std::string_view(options.table), body);
  body.append(R"(,"ReturnConsumedCapacity":"INDEXES")");
  return body;
}

void add_member(std::string& body, std::string_view name, std::string_view text) {
  body.push_back(',');
  write_json(name, body);
  body.push_back(':');
  write_json(text, body);
}

void add_rows(const boost::json::object& answer, std::string_view array, const Names& names, std::vector<Row>& rows,
              Error& error) {
  for (const boost::json::value& item : array_in(answer, array)) {
    const boost::json::object* object = item.if_object();
    auto row = object == nullptr ? Result<Row>(fail(Code::corrupt, "the server gives an item that is none"))
                                 : row_from_item(*object, names);
    if (row) {
      rows.push_back(std::move(*row));
    } else {
      error = row.error();
    }
  }
}

}  // namespace holdfast::store::dynamodb
