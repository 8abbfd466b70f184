#include "serve/service.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "cli/coordination.hpp"
#include "cli/journal_file.hpp"
#include "cli/lambda_call.hpp"
#include "cli/mode.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"
#include "core/coord/limits.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/environment.hpp"
#include "runtime/http_client.hpp"
#include "runtime/http_server.hpp"
#include "runtime/secret.hpp"
#include "runtime/signals.hpp"
#include "serve/lambda_extension.hpp"
#include "store/open.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t token_least = 16;
/// What of the time to stop in order is left for answers, after the guards.
constexpr Duration answers_limit = std::chrono::seconds(5);
/// Lambda kills what is still there at the deadline of its SHUTDOWN.
constexpr Duration shutdown_margin = std::chrono::milliseconds(100);

struct ServeSettings {
  std::string store = "sqlite:holdfast.db", listen = "127.0.0.1:7420", token, journal;
  Duration drain_timeout = std::chrono::seconds(10), store_patience = std::chrono::seconds(5);
  Duration max_age = std::chrono::hours(24);
  std::int64_t max_provisional = 1000, max_guards = 10'000, max_requests = 1000, max_connections = 1024;
  std::size_t max_body = 1 << 20;
  bool lambda_extension = false;
  std::string extension_name;
};

/// Of so many requests at once those that may wait: there is room for who holds something, and for looks at the
/// health.
std::size_t waiting_most(std::size_t requests_most) {
  const std::size_t left = std::max<std::size_t>(2, requests_most / 10);
  return requests_most - std::min(left, requests_most / 2);
}

/// The token itself; empty where none is asked for.
Result<std::string> token_from(const ServeSettings& settings, const runtime::ListenAddress& address) {
  if (settings.token.empty()) {
    if (address.is_local()) return std::string();
    return fail(Code::usage, "--listen: other machines reach " + address.text() +
                                 ", so callers need a token: say where it is with --token env:NAME or file:PATH");
  }
  if (!runtime::is_secret_reference(settings.token)) {
    return fail(Code::usage, "--token: say where the token is, not what it is: env:NAME or file:PATH");
  }
  auto token = runtime::resolve_secret(settings.token);
  if (!token) return fail(Code::usage, "--token: " + token.error().detail);
  const bool is_printable = std::ranges::all_of(*token, [](char c) { return c > ' ' && c < 0x7F; });
  if (token->size() < token_least || !is_printable) {
    return fail(Code::usage, "--token: what is there has fewer than " + std::to_string(token_least) +
                                 " characters, or others than letters, digits and signs of ASCII: 'openssl rand -hex "
                                 "32' makes a good one");
  }
  return token;
}

/// A server, from when it listens until it is told to stop.
class Serving {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Serving>> open(const ServeSettings& settings);
  /// Says where it listens. Who reads that may send signals: they are to be heeded by then.
  void announce() const;
  /// Until stop() is done.
  void run() {
    session_->run_until([&] { return is_stopped_; });
  }
  /// In order; callers have so long to finish with what they hold.
  void stop(Duration for_callers, Duration for_answers);
  /// By a signal: asked twice, at once.
  void stop(const ServeSettings& settings) {
    is_stopping_ ? stop_at_once() : stop(settings.drain_timeout, answers_limit);
  }
  void stop_at_once();

  [[nodiscard]] serve::Service& service() { return *service_; }
  [[nodiscard]] runtime::AsioLoop& loop() { return session_->loop(); }

 private:
  std::unique_ptr<StoreSession> session_;
  std::unique_ptr<coord::Journal> journal_;
  std::unique_ptr<serve::Service> service_;
  std::unique_ptr<runtime::HttpServer> server_;
  bool is_stopping_ = false;
  bool is_stopped_ = false;
};

Result<std::unique_ptr<Serving>> Serving::open(const ServeSettings& settings) {
  if (settings.lambda_extension && !settings.journal.empty()) {
    return fail(Code::usage,
                "--journal: an environment of Lambda goes with all that it has accepted: without a journal");
  }
  if (settings.store_patience <= Duration::zero()) {
    return fail(Code::usage, "--store-patience: in no time no store can be asked");
  }
  if (const auto fine = check_within("--max-age", settings.max_age, coord::waiting); !fine) {
    return tl::unexpected<Error>(fine.error());
  }
  if (settings.max_body == 0) return fail(Code::usage, "--max-body: nearly every request has one");
  const auto address = runtime::parse_listen_address(settings.listen);
  if (!address) return fail(Code::usage, "--listen: " + address.error().detail);
  auto token = token_from(settings, *address);
  if (!token) return tl::unexpected<Error>(token.error());
  auto serving = std::make_unique<Serving>();
  // A journal is one of a table that was there: another one in its place would be empty. While it is away, what comes
  // is accepted provisionally.
  std::error_code ignored;
  const bool has_journal = !settings.journal.empty() && std::filesystem::exists(settings.journal, ignored);
  auto session = StoreSession::open(settings.store,
                                    has_journal ? StoreSession::Create::expected : StoreSession::Create::if_embedded);
  if (!session) return tl::unexpected<Error>(session.error());
  serving->session_ = *std::move(session);
  if (!settings.journal.empty()) {
    auto journal = open_journal(settings.journal, settings.store, true);
    if (!journal) return tl::unexpected<Error>(journal.error());
    serving->journal_ = *std::move(journal);
  }
  runtime::AsioLoop& loop = serving->loop();
  serving->service_ = std::make_unique<serve::Service>(
      serving->session_->store(), loop,
      serve::ServiceOptions{.id = runtime::host_and_process(),
                            .version = std::string(program_version()),
                            .token = *std::move(token),
                            .is_unix = address->is_unix(),
                            .waiting_most = waiting_most(static_cast<std::size_t>(settings.max_requests)),
                            .patience = settings.store_patience,
                            .guards_most = static_cast<std::size_t>(settings.max_guards),
                            .journal = serving->journal_.get(),
                            .max_age = settings.max_age,
                            .max_provisional = static_cast<std::size_t>(settings.max_provisional),
                            .complain = complain,
                            .has_invocations = settings.lambda_extension});
  runtime::HttpServerLimits limits;
  limits.body_bytes_max = settings.max_body;
  limits.connections_max = static_cast<std::size_t>(settings.max_connections);
  limits.requests_max = static_cast<std::size_t>(settings.max_requests);
  auto server = runtime::HttpServer::open(loop, *address, serving->service_->hooks(limits));
  if (!server) return tl::unexpected<Error>(server.error());
  serving->server_ = *std::move(server);
  return serving;
}

void Serving::announce() const {
  const runtime::ListenAddress& bound = server_->address();
  // Nobody may be reading: that is no reason not to serve.
  (void)print("listening on " + std::string(bound.is_unix() ? "" : "http://") + bound.text() + "\n");
}

void Serving::stop(Duration for_callers, Duration for_answers) {
  if (std::exchange(is_stopping_, true)) return;
  service_->drain(for_callers, [this, for_answers] { server_->drain(for_answers, [this] { stop_at_once(); }); });
}

void Serving::stop_at_once() {
  is_stopped_ = true;
  loop().stop();
}

// ---- As an extension of AWS Lambda ----

/// Lambda knows this process by `id`, and is told what becomes of it.
Result<void> run_enrolled(const ServeSettings& settings, LambdaCall& call, const std::string& address,
                          const std::string& id) {
  const auto serving = Serving::open(settings);
  if (!serving) {
    const serve::LambdaError error{"Holdfast.Init", serving.error().detail};
    (void)call.wait<bool>([&](auto& api, auto done) {
      serve::LambdaExtension::tell_init_error(api, id, error, [done] { done(true); });
    });
    return tl::unexpected<Error>(serving.error());
  }
  Serving& server = **serving;
  runtime::AsioLoop& loop = server.loop();
  const runtime::Signals signals(loop, [&](int) { server.stop(settings); });
  server.announce();
  runtime::HttpClient http(loop);
  serve::LambdaApi api(http, loop, address, serve::LambdaExtension::path);
  Result<void> result;
  serve::LambdaExtension::Events events;
  events.invoked = [&](const std::string& invocation, WallTime deadline) {
    server.service().invocation_begun(invocation, deadline);
  };
  events.shut_down = [&](WallTime deadline) {
    // Whoever held something is gone. What cannot be given back in time runs out by itself.
    const Duration left = std::max<Duration>(deadline - loop.wall() - shutdown_margin, Duration::zero());
    loop.call_after(left, [&server] { server.stop_at_once(); });
    server.stop(Duration::zero(), left);
  };
  events.failed = [&](const Error& error) {
    result = tl::unexpected<Error>(error);
    server.stop(Duration::zero(), answers_limit);
  };
  // Only now: asking for the first event says that all is ready.
  const serve::LambdaExtension extension(api, id, std::move(events));
  server.run();
  if (!result) {
    const serve::LambdaError error{"Holdfast.Extension", result.error().detail};
    (void)call.wait<bool>([&](auto& before, auto done) {
      serve::LambdaExtension::tell_exit_error(before, id, error, [done] { done(true); });
    });
  }
  return result;
}

Result<void> run_extension(const ServeSettings& settings) {
  const auto address = lambda_api_address("'holdfast serve --lambda-extension'");
  if (!address) return tl::unexpected<Error>(address.error());
  if (!store::is_remote(settings.store)) {
    complain("--store: " + settings.store +
             " is a table of this one environment: functions that run at once have one each, and exclude nobody. "
             "dynamodb://TABLE is one for all");
  }
  const std::string path = runtime::program_path();
  const std::string name =
      settings.extension_name.empty() ? path.substr(path.rfind('/') + 1) : settings.extension_name;
  LambdaCall call(*address, serve::LambdaExtension::path);
  const auto id = call.wait<Result<std::string>>(
      [&](auto& api, auto done) { serve::LambdaExtension::enroll(api, name, std::move(done)); });
  if (!id) return tl::unexpected<Error>(id.error());
  return run_enrolled(settings, call, *address, *id);
}

Result<void> run_serve(const ServeSettings& settings) {
  runtime::ignore_broken_pipes();
  runtime::raise_descriptor_limit();
  if (settings.lambda_extension) return run_extension(settings);
  const auto serving = Serving::open(settings);
  if (!serving) return tl::unexpected<Error>(serving.error());
  const runtime::Signals signals((*serving)->loop(), [&](int) { (*serving)->stop(settings); });
  (*serving)->announce();
  (*serving)->run();
  return {};
}

}  // namespace

void add_serve(Setup setup) {
  const auto settings = std::make_shared<ServeSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "serve",
       .description =
           "coordinate over HTTP, for callers in any language, until SIGTERM or SIGINT; a second one stops at once",
       .example = "serve --store sqlite:holdfast.db\nserve --listen unix:/run/holdfast.sock\n"
                  "serve --listen 0.0.0.0:7420 --token file:/run/secrets/holdfast\n"
                  "serve --lambda-extension --store 'dynamodb://jobs'",
       .exit_codes = "it could not start; stopped by signals it ends with 0"},
      [settings] { return run_serve(*settings); });
  add_store(app, settings->store);
  add_text(app, "--listen", "WHERE", settings->listen,
           "IP:PORT, where port 0 takes a free one, or unix:FILE; told on the first line");
  add_text(app, "--token", "SECRET", settings->token,
           "env:NAME or file:PATH, where the token is that callers have to show; needed beyond this machine");
  add_duration(app, "--drain-timeout", settings->drain_timeout,
               "how long callers have to finish with what they hold when it stops");
  add_duration(app, "--store-patience", settings->store_patience,
               "how long to wait for a store that does not answer");
  add_text(app, "--journal", "FILE", settings->journal,
           "accept provisionally while the store is away, for callers who ask for that, and settle it by itself");
  add_max_age(app, settings->max_age);
  add_max_provisional(app, settings->max_provisional);
  add_number(app, "--max-guards", settings->max_guards, 1, 1'000'000, "rights held for callers, at most");
  add_number(app, "--max-requests", settings->max_requests, 1, 100'000, "requests under way, at most");
  add_number(app, "--max-connections", settings->max_connections, 1, 100'000, "connections open, at most");
  add_switch(
      app, "--lambda-extension", settings->lambda_extension,
      "as an extension of AWS Lambda, beside a function: what an invocation holds is given back when it is over");
  add_text(app, "--extension-name", "NAME", settings->extension_name,
           "what its file in /opt/extensions is called; without it as this program's file is");
  add_size(app, "--max-body", settings->max_body, std::uint64_t{16} << 20U, "of one request, at most");
}

}  // namespace holdfast::cli
