#include "serve/service.hpp"

#include <boost/json/serialize.hpp>
#include <utility>
#include <vector>

#include "core/coord/names.hpp"
#include "holdfast/assert.hpp"
#include "serve/access.hpp"
#include "serve/desk.hpp"
#include "serve/openapi.hpp"
#include "serve/receiving.hpp"
#include "serve/returns.hpp"
#include "serve/tickets.hpp"

namespace holdfast::serve {

namespace {

bool is_public(std::string_view path) {
  return path == "/healthz" || path == "/openapi.json";
}

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    parts.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return parts;
}

bool is_name(std::string_view part) {
  return part.starts_with('{');
}

/// A row's key is made of the queue's name, "#" and the group's: a "#" in the former would make two of one.
bool is_good(std::string_view name, const std::string& value) {
  if (!coord::check_name(name, value)) return false;
  return name != "{queue}" || value.find('#') == std::string::npos;
}

bool is_json(const runtime::HttpIncoming& request) {
  const std::string* type = request.header("content-type");
  if (type == nullptr) return false;
  const std::string_view media = std::string_view(*type).substr(0, type->find_first_of("; "));
  return media == "application/json";
}

runtime::HttpAnswer json_answer(int status, const boost::json::object& body) {
  runtime::HttpAnswer answer;
  answer.status = status;
  answer.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
  answer.body = boost::json::serialize(body);
  return answer;
}

}  // namespace

void Call::answer(int status, const boost::json::object& body, const std::string& location,
                  std::function<void(bool)> sent) const {
  runtime::HttpAnswer answer = json_answer(status, body);
  if (!location.empty()) answer.headers.push_back({"Location", location});
  exchange_->answer(std::move(answer), std::move(sent));
}

std::string Call::invocation() const {
  const std::string* said = exchange_->request().header(Invocations::header);
  return said == nullptr ? std::string() : *said;
}

std::vector<Route> all_routes() {
  std::vector<Route> all = task_routes();
  for (auto* more : {once_routes, look_routes, number_routes, queue_routes, ticket_routes}) {
    for (Route& route : more()) all.push_back(std::move(route));
  }
  return all;
}

struct Service::Impl {
  Impl(Store& store, Loop& loop, ServiceOptions options_)
      : options(std::move(options_)),
        access(options.token, options.is_unix),
        coordinator(options.id, store, loop),
        guards(loop, options.guards_most),
        desk{store, loop, coordinator, coordinator.runner(), guards, options.patience, Places(options.waiting_most)},
        document(boost::json::serialize(openapi(routes, options.version))) {
    if (options.has_invocations) desk.invocations = &invocations.emplace(loop);
    if (options.journal == nullptr) return;
    tickets.emplace(*options.journal, store, loop,
                    coord::AvailableOptions{.max_provisional = options.max_provisional,
                                            .max_age = options.max_age,
                                            .patience = options.patience,
                                            .proposer = options.id});
    desk.tickets = &*tickets;
  }
  ~Impl() {
    for (const TimerId timer : {drain_timer, invocation_timer}) {
      if (timer != 0) desk.loop.cancel(timer);
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void serve(const std::shared_ptr<runtime::HttpExchange>& exchange);
  void serve_public(const std::shared_ptr<runtime::HttpExchange>& exchange, std::string_view path) const;
  [[nodiscard]] std::vector<const Route*> find(const std::vector<std::string_view>& parts) const;
  void call(const std::shared_ptr<runtime::HttpExchange>& exchange, const Route& route,
            const std::vector<std::string_view>& parts);
  /// Whether this machine was stopped without its clock telling: then nothing is believed any more (S7).
  void look_for_stops();
  /// Takes back what those hold who are of no current invocation; what may be one's that begins runs out.
  void end_invocations(const std::string& that_begins = {});
  void drained();
  [[nodiscard]] tl::expected<Call::Names, Problem> names(const Route& route,
                                                         const std::vector<std::string_view>& parts) const;

  const ServiceOptions options;
  const Access access;
  const std::vector<Route> routes = all_routes();
  coord::Coordinator coordinator;
  Guards guards;
  Desk desk;
  Returns returns{desk, options.complain};
  std::optional<Tickets> tickets;
  const std::string document;
  std::optional<Invocations> invocations;
  std::uint64_t stops_seen = 0;
  std::size_t batches_on_their_way_back = 0;
  bool guards_are_drained = false;
  std::function<void()> when_drained;
  TimerId drain_timer = 0, invocation_timer = 0;
};

Service::Service(Store& store, Loop& loop, ServiceOptions options)
    : impl_(std::make_unique<Impl>(store, loop, std::move(options))) {}

Service::~Service() = default;

runtime::HttpAnswer Service::refuse(int status, std::string_view why) {
  return answer_of(problem_of(status, why));
}

std::optional<runtime::HttpAnswer> Service::admit(const runtime::HttpIncoming& request) const {
  const auto problem = impl_->access.check(request, is_public(path_of(request.target)));
  if (!problem) return std::nullopt;
  runtime::HttpAnswer answer = answer_of(*problem);
  if (problem->status == 401) answer.headers.push_back({"WWW-Authenticate", "Bearer"});
  return answer;
}

runtime::HttpServerOptions Service::hooks(runtime::HttpServerLimits limits) {
  runtime::HttpServerOptions hooks;
  hooks.limits = limits;
  hooks.serve = [this](std::shared_ptr<runtime::HttpExchange> exchange) { serve(std::move(exchange)); };
  hooks.admit = [this](const runtime::HttpIncoming& request) { return admit(request); };
  hooks.refuse = refuse;
  return hooks;
}

void Service::serve(std::shared_ptr<runtime::HttpExchange> exchange) {
  impl_->serve(exchange);
}

void Service::drain(Duration limit, std::function<void()> done) {
  Impl& impl = *impl_;
  impl.desk.is_draining = true;
  impl.desk.waiting.stop(draining(), [](const Call&) { return true; });
  impl.when_drained = std::move(done);
  impl.guards.when_empty([&impl] {
    impl.guards_are_drained = true;
    impl.drained();
  });
  impl.drain_timer = impl.desk.loop.call_after(limit, [&impl] {
    impl.drain_timer = 0;
    impl.guards.let_all_go(GuardEnd::drained);
    if (impl.invocations) impl.invocations->over();
    impl.end_invocations();
    impl.drained();
  });
}

void Service::Impl::drained() {
  const bool has_batches = batches_on_their_way_back > 0 || (invocations && invocations->has_batches());
  if (!when_drained || !guards_are_drained || has_batches) return;
  std::exchange(when_drained, {})();
}

// ---- Invocations ----

void Service::invocation_begun(const std::string& id, WallTime deadline) {
  Impl& impl = *impl_;
  if (!impl.invocations) return;
  impl.look_for_stops();
  // Before who waited for it is called: what is given to those is this one's. One that is begun again, as AWS does
  // with what failed, may have asked already.
  impl.invocations->over();
  impl.end_invocations(id);
  impl.invocations->begun(id);
  Loop& loop = impl.desk.loop;
  if (impl.invocation_timer != 0) loop.cancel(impl.invocation_timer);
  impl.invocation_timer = loop.call_at(loop.instant() + (deadline - loop.wall()), [&impl] {
    impl.invocation_timer = 0;
    impl.invocations->over();
    impl.end_invocations();
  });
}

void Service::Impl::look_for_stops() {
  if (!invocations || std::exchange(stops_seen, invocations->stops()) == stops_seen) return;
  for (const GuardPtr& guard : guards.all()) {
    guards.let_run_out(guard, GuardEnd::lost, "this machine stood still");
  }
}

void Service::Impl::end_invocations(const std::string& that_begins) {
  if (!invocations) return;
  const auto is_in_doubt = [&](const std::string& id) { return id.empty() || id == that_begins; };
  desk.waiting.stop(invocation_over(), [&](const Call& call) {
    return !is_in_doubt(call.invocation()) && !invocations->is_current(call.invocation());
  });
  for (const GuardPtr& guard : guards.all()) {
    if (invocations->is_current(guard->invocation)) continue;
    const std::string reason = "invocation was over";
    if (is_in_doubt(guard->invocation)) {
      guards.let_run_out(guard, GuardEnd::let_go, reason);
    } else {
      if (!guard->end) guard->reason = reason;
      guards.let_go(guard, GuardEnd::let_go);
    }
  }
  for (const Receipt& receipt : invocations->take_left_behind(that_begins)) {
    ++batches_on_their_way_back;
    give_back(desk, receipt, Given::to_its_caller, [this] {
      --batches_on_their_way_back;
      drained();
    });
  }
}

// ---- Routing ----

std::vector<const Route*> Service::Impl::find(const std::vector<std::string_view>& parts) const {
  std::vector<const Route*> found;
  for (const Route& route : routes) {
    const std::vector<std::string_view> pattern = split(route.path);
    bool fits = pattern.size() == parts.size();
    for (std::size_t i = 0; fits && i < parts.size(); ++i) fits = is_name(pattern[i]) || pattern[i] == parts[i];
    if (fits) found.push_back(&route);
  }
  return found;
}

void Service::Impl::serve(const std::shared_ptr<runtime::HttpExchange>& exchange) {
  look_for_stops();
  const runtime::HttpIncoming& request = exchange->request();
  const std::string_view path = path_of(request.target);
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const bool is_open = is_public(path);
  std::string allowed = is_open ? "GET, HEAD, OPTIONS" : "";
  const std::vector<std::string_view> parts = split(path == "*" ? "" : path);
  const std::vector<const Route*> found = is_open ? std::vector<const Route*>() : find(parts);
  for (const Route* route : found) {
    allowed += (allowed.empty() ? "" : ", ") + std::string(route->method == "GET" ? "GET, HEAD" : route->method);
  }
  if (!found.empty()) allowed += ", OPTIONS";
  if (path == "*") allowed = "GET, HEAD, POST, OPTIONS";
  if (allowed.empty()) {
    return exchange->answer(
        answer_of({404, "not_found", "There is no such path: /openapi.json has those there are.", {}}));
  }
  if (method == "OPTIONS") {
    runtime::HttpAnswer answer;
    answer.status = 204;
    answer.headers = {{"Allow", allowed}};
    return exchange->answer(std::move(answer));
  }
  if (is_open && method == "GET") return serve_public(exchange, path);
  for (const Route* route : found) {
    if (route->method == method) return call(exchange, *route, parts);
  }
  runtime::HttpAnswer answer = answer_of({405, "method_not_allowed", "Here it is " + allowed + ".", {}});
  answer.headers.push_back({"Allow", allowed});
  exchange->answer(std::move(answer));
}

void Service::Impl::serve_public(const std::shared_ptr<runtime::HttpExchange>& exchange,
                                 std::string_view path) const {
  if (path == "/healthz") {
    return exchange->answer(json_answer(200, {{"status", desk.is_draining ? "draining" : "ok"},
                                              {"guards", guards.held()},
                                              {"store", desk.store.capabilities().name}}));
  }
  runtime::HttpAnswer answer;
  answer.status = 200;
  answer.headers = {{"Content-Type", "application/json"}};
  answer.body = document;
  exchange->answer(std::move(answer));
}

tl::expected<Call::Names, Problem> Service::Impl::names(const Route& route,
                                                        const std::vector<std::string_view>& parts) const {
  const std::vector<std::string_view> pattern = split(route.path);
  Call::Names names;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!is_name(pattern[i])) continue;
    const auto value = decode_part(parts[i]);
    const std::string name(pattern[i].substr(1, pattern[i].size() - 2));
    if (!value || !is_good(pattern[i], *value)) {
      return tl::unexpected(bad_request("The " + name + " in the path must be 1 to " +
                                        std::to_string(coord::name_bytes_most) +
                                        " bytes of UTF-8, percent-encoded, without control characters" +
                                        (name == "queue" ? " and without '#'." : ".")));
    }
    names.emplace(name, *value);
  }
  return names;
}

void Service::Impl::call(const std::shared_ptr<runtime::HttpExchange>& exchange, const Route& route,
                         const std::vector<std::string_view>& parts) {
  const runtime::HttpIncoming& request = exchange->request();
  const auto refuse = [&](const Problem& problem) { exchange->answer(answer_of(problem)); };
  auto path = names(route, parts);
  if (!path) return refuse(path.error());
  const std::size_t mark = request.target.find('?');
  auto query = read_query(route.query, mark == std::string::npos ? std::string_view()
                                                                 : std::string_view(request.target).substr(mark + 1));
  if (!query) return refuse(query.error());
  Input body;
  if (route.method == "POST") {
    // A web page may send anything but this without asking first, which nobody here would allow.
    if (!is_json(request)) return refuse({415, "not_json", "The body must be application/json.", {}});
    auto read = read_body(route.body, request.body);
    if (!read) return refuse(read.error());
    body = *std::move(read);
  } else if (!request.body.empty()) {
    return refuse(bad_request("A GET has no body."));
  }
  const auto made = std::make_shared<const Call>(exchange, *std::move(path), *std::move(query), std::move(body));
  const std::string invocation = made->invocation();
  if (!invocations || invocation.empty()) return route.handler(desk, made);
  // The function was told of it before us: what it asks for now would be taken for the last one's.
  invocations->when_known(invocation, options.patience, [this, &route, made](bool is_known) {
    if (is_known) return route.handler(desk, made);
    made->fail(Problem{503, "unavailable", "This extension was not told of the invocation that asks.", {}});
  });
}

}  // namespace holdfast::serve
