#include "serve/service.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/journal_file.hpp"
#include "cli/mode.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/environment.hpp"
#include "runtime/http_server.hpp"
#include "runtime/secret.hpp"
#include "runtime/signals.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t token_least = 16;
/// What of the time to stop in order is left for answers, after the guards.
constexpr Duration answers_limit = std::chrono::seconds(5);

struct ServeSettings {
  std::string store = "sqlite:holdfast.db", listen = "127.0.0.1:7420", token, journal;
  Duration drain_timeout = std::chrono::seconds(10), store_patience = std::chrono::seconds(5);
  Duration max_age = std::chrono::hours(24);
  std::int64_t max_provisional = 1000, max_guards = 10'000, max_requests = 1000, max_connections = 1024;
  std::size_t max_body = 1 << 20;
};

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
  if (!token) return tl::unexpected<Error>(Error(token.error().code, "--token: " + token.error().detail));
  const bool is_printable = std::ranges::all_of(*token, [](char c) { return c > ' ' && c < 0x7F; });
  if (token->size() < token_least || !is_printable) {
    return fail(Code::usage, "--token: what is there has fewer than " + std::to_string(token_least) +
                                 " characters, or others than letters, digits and signs of ASCII: 'openssl rand -hex "
                                 "32' makes a good one");
  }
  return token;
}

Result<void> run_serve(const ServeSettings& settings) {
  const auto address = runtime::parse_listen_address(settings.listen);
  if (!address) return fail(Code::usage, "--listen: " + address.error().detail);
  auto token = token_from(settings, *address);
  if (!token) return tl::unexpected<Error>(token.error());
  const auto session = StoreSession::open(settings.store, StoreSession::Create::if_embedded);
  if (!session) return tl::unexpected<Error>(session.error());
  std::unique_ptr<coord::Journal> journal;
  if (!settings.journal.empty()) {
    auto opened = open_journal(settings.journal, settings.store, true);
    if (!opened) return tl::unexpected<Error>(opened.error());
    journal = *std::move(opened);
  }
  runtime::ignore_broken_pipes();
  runtime::raise_descriptor_limit();
  runtime::AsioLoop& loop = (*session)->loop();
  serve::Service service((*session)->store(), loop,
                         {.id = runtime::host_and_process(),
                          .version = std::string(program_version()),
                          .token = *std::move(token),
                          .is_unix = address->is_unix(),
                          .patience = settings.store_patience,
                          .guards_most = static_cast<std::size_t>(settings.max_guards),
                          .journal = journal.get(),
                          .max_age = settings.max_age,
                          .max_provisional = static_cast<std::size_t>(settings.max_provisional)});
  runtime::HttpServerLimits limits;
  limits.body_bytes_max = settings.max_body;
  limits.connections_max = static_cast<std::size_t>(settings.max_connections);
  limits.requests_max = static_cast<std::size_t>(settings.max_requests);
  const auto server = runtime::HttpServer::open(loop, *address, service.hooks(limits));
  if (!server) return tl::unexpected<Error>(server.error());
  bool stopping = false;
  bool stopped = false;
  const auto stop = [&] {
    stopped = true;
    loop.stop();
  };
  const runtime::Signals signals(loop, [&](int) {
    if (std::exchange(stopping, true)) return stop();  // asked twice: at once
    service.drain(settings.drain_timeout, [&] { (*server)->drain(answers_limit, stop); });
  });
  const runtime::ListenAddress& bound = (*server)->address();
  // Nobody may be reading: that is no reason not to serve.
  (void)print("listening on " + std::string(bound.is_unix() ? "" : "http://") + bound.text() + "\n");
  (*session)->run_until([&] { return stopped; });
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
                  "serve --listen 0.0.0.0:7420 --token file:/run/secrets/holdfast",
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
  add_size(app, "--max-body", settings->max_body, std::uint64_t{16} << 20U, "of one request, at most");
}

}  // namespace holdfast::cli
