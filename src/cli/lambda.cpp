#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <memory>

#include "cli/command_line.hpp"
#include "cli/lambda_call.hpp"
#include "cli/once_run.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "coord/fingerprint.hpp"
#include "core/coord/names.hpp"
#include "runtime/environment.hpp"
#include "runtime/http_client.hpp"
#include "serve/lambda_runtime.hpp"

namespace holdfast::cli {

namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::size_t shown_most = 4096;

struct LambdaSettings {
  OnceSettings once;
  std::string key, key_prefix, fingerprint;
};

serve::LambdaError trouble(std::string type, std::string message) {
  return {"Holdfast." + std::move(type), std::move(message)};
}

// ---- The event ----

/// RFC 6901; not the whole event, which says nothing by itself.
Result<void> check_pointer(const std::string& option, const std::string& pointer) {
  bool is_good = pointer.empty() || pointer.front() == '/';
  for (std::size_t at = pointer.find('~'); is_good && at != std::string::npos; at = pointer.find('~', at + 1)) {
    is_good = at + 1 < pointer.size() && (pointer[at + 1] == '0' || pointer[at + 1] == '1');
  }
  if (is_good) return {};
  return fail(Code::usage, option + ": '" + pointer + "' is no JSON pointer: one looks like /detail/id");
}

using Found = tl::expected<std::string, serve::LambdaError>;

Found key_in(const json::value& event, const std::string& pointer) {
  boost::system::error_code error;
  const json::value* value = event.find_pointer(pointer, error);
  if (value == nullptr) return tl::unexpected(trouble("KeyMissing", "the event has no " + pointer));
  if (const auto* text = value->if_string(); text != nullptr && !text->empty()) return std::string(*text);
  if (value->is_int64() || value->is_uint64()) return json::serialize(*value);
  return tl::unexpected(trouble("KeyMissing", "in the event " + pointer + " is neither a text nor a whole number"));
}

Found fingerprint_in(const json::value& event, const std::string& pointer) {
  boost::system::error_code error;
  const json::value* value = event.find_pointer(pointer, error);
  if (value == nullptr) return tl::unexpected(trouble("FingerprintMissing", "the event has no " + pointer));
  return coord::fingerprint_of(json::serialize(*value));
}

// ---- One invocation after the other ----

class Handling {
 public:
  Handling(Coordination& here, const LambdaSettings& settings, OnceJob job, const std::string& address)
      : here_(here),
        settings_(settings),
        job_(std::move(job)),
        http_(here.session().loop()),
        runtime_(http_, here.session().loop(), address) {}

  /// Until it is told to end (nothing), or the API is gone.
  Result<void> run();

 private:
  using Response = tl::expected<std::string, serve::LambdaError>;
  /// Begins it and waits for what it calls back with; nothing: a signal came.
  template <class T>
  std::optional<T> wait(const std::function<void(std::function<void(T)>)>& begin);
  Response handle(const serve::Invocation& invocation);
  tl::expected<void, serve::LambdaError> name(OnceJob& job, const serve::Invocation& invocation) const;
  void limit(OnceJob& job, Duration left) const;
  static Response response_of(OnceEnd end);

  Coordination& here_;
  const LambdaSettings& settings_;
  const OnceJob job_;  // what all have in common
  runtime::HttpClient http_;
  serve::LambdaRuntime runtime_;
};

template <class T>
std::optional<T> Handling::wait(const std::function<void(std::function<void(T)>)>& begin) {
  // Shared: it may call back when a signal has ended the wait.
  const auto got = std::make_shared<std::optional<T>>();
  begin([this, got](T value) {
    *got = std::move(value);
    here_.wake();
  });
  (void)here_.run_until([&] { return got->has_value(); });
  return std::move(*got);
}

Result<void> Handling::run() {
  for (;;) {
    const auto invocation = wait<Result<serve::Invocation>>([&](auto done) { runtime_.next(std::move(done)); });
    if (!invocation) return {};
    if (!*invocation) return tl::unexpected<Error>(invocation->error());
    const std::string& id = (*invocation)->id;
    const Response response = handle(**invocation);
    if (!response) complain(id + ": " + response.error().message);
    const auto told = wait<Result<std::string>>([&](auto done) {
      response ? runtime_.respond(id, *response, std::move(done))
               : runtime_.fail(id, response.error(), std::move(done));
    });
    if (told && !*told) return tl::unexpected<Error>(told->error());
    if (told && !(*told)->empty()) complain(id + ": " + **told);
    if (!told || here_.told_to_end() != 0) return {};
  }
}

Handling::Response Handling::handle(const serve::Invocation& invocation) {
  const Duration left = invocation.deadline - here_.session().wall();
  if (left <= Duration::zero()) return tl::unexpected(trouble("TimedOut", "the invocation came after its deadline"));
  OnceJob job = job_;
  if (const auto named = name(job, invocation); !named) return tl::unexpected(named.error());
  limit(job, left);
  job.command.input = invocation.event;
  job.command.environment = {
      {"_X_AMZN_TRACE_ID", invocation.trace},
      {"HOLDFAST_REQUEST_ID", invocation.id},
      {"HOLDFAST_FUNCTION_ARN", invocation.function_arn},
      {"HOLDFAST_INVOCATION_DEADLINE_MS", std::to_string(invocation.deadline.time_since_epoch().count())}};
  return response_of(run_once(here_, job));
}

tl::expected<void, serve::LambdaError> Handling::name(OnceJob& job, const serve::Invocation& invocation) const {
  std::string key = invocation.id;
  if (!settings_.key.empty() || !settings_.fingerprint.empty()) {
    boost::system::error_code error;
    json::parse_options options;
    options.max_depth = 256;
    const json::value event = json::parse(invocation.event, error, {}, options);
    if (error) return tl::unexpected(trouble("EventMalformed", "the event is no JSON: " + error.message()));
    if (!settings_.key.empty()) {
      Found found = key_in(event, settings_.key);
      if (!found) return tl::unexpected(found.error());
      key = *std::move(found);
    }
    if (!settings_.fingerprint.empty()) {
      if (!coord::is_all_kept(invocation.event)) {
        return tl::unexpected(trouble("EventMalformed",
                                      "the event has a member twice, or a number with more digits than are kept: no "
                                      "fingerprint tells it from others"));
      }
      Found found = fingerprint_in(event, settings_.fingerprint);
      if (!found) return tl::unexpected(found.error());
      job.what.fingerprint = *std::move(found);
    }
  }
  job.what.key = settings_.key_prefix + key;
  const auto checked = coord::check_name("The key", job.what.key);
  if (checked) return {};
  return tl::unexpected(trouble("KeyTooLong", checked.error().detail));
}

/// All of it ends before the invocation's deadline: waiting for others, the command, and what is left then is for the
/// store and the answer.
void Handling::limit(OnceJob& job, Duration left) const {
  const Instant deadline = here_.session().instant() + left;
  const Duration afterwards = std::min<Duration>(left / 10, 1s);
  job.limit = TimeLimit{deadline - afterwards, std::min<Duration>(left / 10, 5s)};
  job.give_up_at = deadline - afterwards / 4;
  job.options.wait = std::min<Duration>(job.options.wait, left - afterwards);
  job.options.patience = std::min<Duration>(job.options.patience, left);
}

Handling::Response Handling::response_of(OnceEnd end) {
  const auto because = [&](const char* type) { return tl::unexpected(trouble(type, end.why)); };
  switch (end.how) {
    case OnceEnd::How::told:
      break;
    case OnceEnd::How::interrupted:
      return tl::unexpected(trouble("Stopped", "the runtime was told to end"));
    case OnceEnd::How::busy:
      return because("Busy");
    case OnceEnd::How::held:
      return because("Held");
    case OnceEnd::How::mismatch:
      return because("Mismatch");
    case OnceEnd::How::not_started:
      return because("NotStarted");
    case OnceEnd::How::lost:
      return because("LostRight");
    case OnceEnd::How::late:
      return because("TimedOut");
    case OnceEnd::How::too_large:
      return because("TooLarge");
    case OnceEnd::How::unrecorded:
      return because("NotRecorded");
    case OnceEnd::How::unavailable:
      return because("Unavailable");
    case OnceEnd::How::failed:
      return because("Failed");
  }
  if (end.exit_code == 0) return std::move(end.output);
  const std::string shown = one_line(end.output.substr(0, shown_most));
  const std::string after = shown.empty() ? "" : ": " + shown;
  if (end.signal != 0) {
    return tl::unexpected(
        trouble("HandlerKilled", "signal " + std::to_string(end.signal) + " ended the command" + after));
  }
  return tl::unexpected(
      trouble("HandlerFailed", "the command ended with exit code " + std::to_string(end.exit_code) + after));
}

// ---- The beginning ----

Result<OnceJob> prepare(LambdaSettings& settings) {
  for (const auto& [option, pointer] :
       {std::pair("--key", &settings.key), {"--fingerprint", &settings.fingerprint}}) {
    if (const auto checked = check_pointer(option, *pointer); !checked) return tl::unexpected<Error>(checked.error());
  }
  auto job = once_job(settings.once);
  if (!job) return job;
  if (const auto found = runtime::find_program(settings.once.command.front()); !found) {
    return tl::unexpected<Error>(found.error());
  }
  if (settings.key_prefix.empty()) {
    const auto function = runtime::environment("AWS_LAMBDA_FUNCTION_NAME");
    if (function) settings.key_prefix = *function + '/';
  }
  return job;
}

Result<void> run_lambda(LambdaSettings& settings) {
  const auto address = lambda_api_address("'holdfast lambda'");
  if (!address) return tl::unexpected<Error>(address.error());
  runtime::ignore_broken_pipes();
  if (!store::is_remote(settings.once.right.store)) {
    complain("--store: " + settings.once.right.store + " is this environment's own: no other one sees what is in it");
  }
  auto job = prepare(settings);
  auto here = job ? Coordination::open(settings.once.right.store, settings.once.right.store_patience,
                                       StoreSession::Create::if_embedded)
                  : tl::unexpected<Error>(job.error());
  if (!here) {
    // Who told Lambda why has the function fail with that, and not with an exit code.
    const auto error = trouble(here.error().code == Code::usage ? "Usage" : "Init", here.error().detail);
    (void)LambdaCall(*address, serve::LambdaRuntime::path).wait<bool>([&](auto& api, auto done) {
      serve::LambdaRuntime::tell_init_error(api, error, std::move(done));
    });
    return tl::unexpected<Error>(here.error());
  }
  return Handling(**here, settings, *std::move(job), *address).run();
}

}  // namespace

void add_lambda(Setup setup) {
  const auto settings = std::make_shared<LambdaSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "lambda",
       .description = "run a command once for each event, as a custom runtime of AWS Lambda: event in, response out",
       .example = "lambda --key /detail/id --fingerprint /detail --abandoned hold -- ./handler.sh",
       .exit_codes = "it could not start, or Lambda's API is gone; told to end by a signal it ends with 0"},
      [settings] { return run_lambda(*settings); });
  add_command_argument(app, settings->once.command);
  add_text(
      app, "--key", "POINTER", settings->key,
      "a JSON pointer into the event: what is there is to be handled once; without it the id of the request, which "
      "Lambda's own retries have in common");
  add_text(app, "--key-prefix", "TEXT", settings->key_prefix,
           "in front of the key; without it the function's name and a slash");
  add_text(app, "--fingerprint", "POINTER", settings->fingerprint,
           "a JSON pointer into the event: the same key with something else there is refused");
  add_once_options(app, settings->once, "whoever is handling the same event",
                   "the event is handled again when it comes again");
}

}  // namespace holdfast::cli
