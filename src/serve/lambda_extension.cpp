#include "serve/lambda_extension.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <utility>

namespace holdfast::serve {

namespace {

namespace json = boost::json;

constexpr const char* identifier = "Lambda-Extension-Identifier";
constexpr const char* error_type = "Lambda-Extension-Function-Error-Type";

struct Event {
  std::string type, id;
  WallTime deadline{};
};

/// A time, in milliseconds since 1970; AWS's own papers also have what is left until then.
WallTime deadline_from(std::int64_t ms, WallTime now) {
  constexpr std::int64_t left_most = 100'000'000'000;  // in 1973
  const std::chrono::milliseconds given(ms);
  return ms < left_most ? now + given : WallTime(given);
}

std::optional<Event> event_from(const std::string& text, WallTime now) {
  boost::system::error_code error;
  const json::value document = json::parse(text, error);
  const json::object* object = error ? nullptr : document.if_object();
  if (object == nullptr) return std::nullopt;
  const auto* type = object->if_contains("eventType");
  const auto* deadline = object->if_contains("deadlineMs");
  const auto* id = object->if_contains("requestId");
  if (type == nullptr || !type->is_string() || deadline == nullptr || !deadline->is_int64()) return std::nullopt;
  Event event{std::string(type->get_string()), {}, deadline_from(deadline->get_int64(), now)};
  if (id != nullptr && id->is_string()) event.id = id->get_string();
  if (event.type == "INVOKE" && event.id.empty()) return std::nullopt;
  return event;
}

void tell_error(LambdaApi& api, const std::string& path, const std::string& id, const LambdaError& error,
                std::function<void()> done) {
  api.post_error(path, error_type, {{identifier, id}}, error,
                 [done = std::move(done)](const Result<runtime::HttpAnswer>&) { done(); });
}

}  // namespace

void LambdaExtension::enroll(LambdaApi& api, const std::string& name, std::function<void(Result<std::string>)> done) {
  api.post(
      "/register", {{"Lambda-Extension-Name", name}}, R"({"events":["INVOKE","SHUTDOWN"]})",
      [name, base = api.base(), done = std::move(done)](const Result<runtime::HttpAnswer>& answer) {
        if (!answer) return done(tl::unexpected<Error>(answer.error()));
        const std::string* id = answer->header(identifier);
        if (answer->status == 200 && id != nullptr) return done(*id);
        done(tl::unexpected<Error>(unexpected_answer(
            base + "/register as '" + name + "' (that must be the name of the file in /opt/extensions)", *answer)));
      });
}

void LambdaExtension::tell_init_error(LambdaApi& api, const std::string& id, const LambdaError& error,
                                      std::function<void()> done) {
  tell_error(api, "/init/error", id, error, std::move(done));
}

void LambdaExtension::tell_exit_error(LambdaApi& api, const std::string& id, const LambdaError& error,
                                      std::function<void()> done) {
  tell_error(api, "/exit/error", id, error, std::move(done));
}

LambdaExtension::LambdaExtension(LambdaApi& api, std::string id, Events events)
    : api_(api), id_(std::move(id)), events_(std::move(events)) {
  ask();
}

void LambdaExtension::ask() {
  api_.next("/event/next", {{identifier, id_}}, [this](const Result<runtime::HttpAnswer>& answer) {
    if (!answer) return events_.failed(answer.error());
    got(*answer);
  });
}

void LambdaExtension::got(const runtime::HttpAnswer& answer) {
  const auto event = answer.status == 200 ? event_from(answer.body, api_.wall()) : std::nullopt;
  if (!event) return events_.failed(unexpected_answer(api_.base() + "/event/next", answer));
  if (event->type == "SHUTDOWN") return events_.shut_down(event->deadline);
  if (event->type == "INVOKE") events_.invoked(event->id, event->deadline);
  ask();  // at once: until then the invocation cannot end
}

}  // namespace holdfast::serve
