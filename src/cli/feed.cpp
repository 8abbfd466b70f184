#include <memory>

#include "cli/feed_server.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "runtime/environment.hpp"

namespace holdfast::cli {

namespace {

struct FeedSettings {
  FeedOptions feed;
  std::int64_t port = 8080, streams = 10, history = 1000, close_code = 1001;
};

Result<void> run_feed(FeedSettings& settings) {
  FeedOptions& feed = settings.feed;
  feed.port = static_cast<std::uint16_t>(settings.port);
  feed.streams = static_cast<std::size_t>(settings.streams);
  feed.history = static_cast<std::size_t>(settings.history);
  feed.close_code = static_cast<std::uint16_t>(settings.close_code);
  const auto code = settings.close_code;
  if (code == 1004 || code == 1005 || code == 1006 || code == 1015) {
    return fail(Code::usage, "--close-code: " + std::to_string(code) + " is never sent: use another, such as 1012");
  }
  if (feed.rate * static_cast<double>(feed.streams) > 1e6) {
    return fail(Code::usage, "--streams times --rate is more than 1000000 messages per second: ask for fewer");
  }
  if (feed.streams * feed.history > 200'000'000) {
    return fail(Code::usage, "--streams times --history is more than 200000000 messages to keep: ask for fewer");
  }
  runtime::raise_descriptor_limit();
  return serve_feed(feed, [](std::string_view address) {
    // Nobody may be reading: that is no reason not to serve.
    (void)print("listening on ws://" + std::string(address) + "/stream/NAME\n");
  });
}

}  // namespace

void add_feed(Setup setup) {
  const auto settings = std::make_shared<FeedSettings>();
  CLI::App& app = add_command(setup,
                              {.name = "feed",
                               .description = "an upstream for trying things: numbered JSON messages over WebSocket",
                               .example = "feed --port 8080 --streams 30 --rate 20 --history 1000",
                               .exit_codes = "it could not listen"},
                              [settings] { return run_feed(*settings); });
  FeedOptions& feed = settings->feed;
  add_number(app, "--port", settings->port, 0, 65535, "where to listen; 0: a free one, told on the first line");
  add_text(app, "--listen", "IP", feed.listen, "the address to listen on");
  add_number(app, "--streams", settings->streams, 1, 1'000'000, "how many: /stream/s0, /stream/s1, …");
  add_decimal(app, "--rate", feed.rate, 0.001, 100'000, "messages per second of each stream");
  add_number(app, "--history", settings->history, 0, 100'000'000,
             "messages of each stream that /stream/NAME?since=SEQ can ask for again");
  add_size(app, "--size", feed.size, std::uint64_t{16} << 20U, "length of the text in each message");
  add_number(app, "--messages", feed.messages, 0, 1'000'000'000'000,
             "each stream falls silent after so many; 0: never");
  add_number(app, "--begin-with", feed.begin_with, 0, 1'000'000,
             "say nothing before so many clients listen at once; 0: speak from the start");
  add_number(app, "--close-every", feed.close_every, 0, 1'000'000'000'000,
             "close each connection after so many messages; 0: never");
  add_number(app, "--close-code", settings->close_code, 1000, 4999, "with this code");
  add_number(app, "--drop-every", feed.drop_every, 0, 1'000'000'000'000,
             "cut each connection after so many messages, without a word; 0: never");
}

}  // namespace holdfast::cli
