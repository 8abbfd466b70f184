#include <memory>

#include "cli/connections.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"
#include "worker/stream_options.hpp"

namespace holdfast::cli {

namespace {

struct AddSettings {
  std::string store = "sqlite:holdfast.db";
  std::string id, url, seq_missing = "deliver";
  std::vector<std::string> headers;
  bool stopped = false, replace = false;
  worker::StreamOptions stream;
};

Result<void> read_headers(const std::vector<std::string>& texts, worker::StreamOptions& stream) {
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos || colon == 0) {
      return fail(Code::usage, "--header needs a name, a colon and a value, as in 'Authorization:env:TOKEN'");
    }
    const std::size_t begin = text.find_first_not_of(' ', colon + 1);
    stream.headers.emplace_back(text.substr(0, colon), begin == std::string::npos ? "" : text.substr(begin));
  }
  return {};
}

Result<Attributes> stream_of(AddSettings& settings) {
  worker::StreamOptions& stream = settings.stream;
  const auto url = ws::parse_url(settings.url);
  if (!url) return tl::unexpected<Error>(Error(url.error().code, "--url: " + url.error().detail));
  stream.url = *url;
  if (settings.seq_missing != "deliver" && settings.seq_missing != "drop") {
    return fail(Code::usage, "--seq-missing: '" + settings.seq_missing + "' is neither deliver nor drop");
  }
  stream.seq_missing = settings.seq_missing == "drop" ? worker::StreamOptions::SeqMissing::drop
                                                      : worker::StreamOptions::SeqMissing::deliver;
  if (const auto read = read_headers(settings.headers, stream); !read) return tl::unexpected<Error>(read.error());
  if (const auto checked = stream.check(); !checked) return tl::unexpected<Error>(checked.error());
  return stream.to_row();
}

Result<void> run_add(AddSettings& settings) {
  if (auto checked = check_id(settings.id); !checked) return checked;
  const auto stream = stream_of(settings);
  if (!stream) return tl::unexpected<Error>(stream.error());
  const auto session = StoreSession::open(settings.store, StoreSession::Create::if_embedded);
  if (!session) return tl::unexpected<Error>(session.error());
  StoreSession& store = **session;
  const WallTime now = store.wall();

  std::string done = "added";
  if (settings.replace) {
    const auto replaced = store.update(replace_connection(settings.id, *stream, settings.stopped));
    if (!replaced) return tl::unexpected<Error>(replaced.error());
    if (replaced->applied) return print(settings.id + " changed\n");
  }
  const Update add = add_connection(settings.id, *stream, settings.stopped, now);
  const auto added = store.update(add);
  if (!added) return tl::unexpected<Error>(added.error());
  const bool ours = added->applied || (added->may_be_ours && added->row && says_as_added(*added->row, add));
  if (!ours) return tl::unexpected<Error>(explain_add_conflict(settings.id, added->row, now));
  return print(settings.id + " added" + (settings.stopped ? ", stopped" : "") + "\n");
}

}  // namespace

void add_conn_add(Setup setup) {
  const auto settings = std::make_shared<AddSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "add",
       .description = "add a connection, which a worker then takes",
       .example = "conn add s0 --url ws://127.0.0.1:8080/stream/s0 --resume-query since --seq-pointer /seq",
       .exit_codes = "the connection exists already, or the table is not to be had"},
      [settings] { return run_add(*settings); });
  worker::StreamOptions& stream = settings->stream;
  add_argument(app, "ID", settings->id, "its name");
  add_store(app, settings->store);
  add_text(app, "--url", "URL", settings->url, "where to connect: ws://… or wss://…").required();
  add_text(app, "--resume-query", "NAME", stream.resume_query,
           "this parameter of the URL carries the last number received");
  add_text(app, "--resume-message", "TEMPLATE", stream.resume_message,
           "sent after opening to go on from the last number received; docs/options.md has the fields");
  add_switch(app, "--resume-inclusive", stream.resume_inclusive,
             "the upstream begins with the number that it is given, not after it");
  add_text(app, "--seq-pointer", "POINTER", stream.seq_pointer,
           "where each JSON message has its number, such as /seq; without it messages are numbered here");
  add_text(app, "--seq-missing", "WHAT", settings->seq_missing,
           "messages without a number: deliver them, or drop them");
  add_list(app, "--header", "NAME:VALUE", settings->headers,
           "sent when connecting; a value env:NAME or file:PATH is looked up by the worker each time");
  add_list(app, "--subprotocol", "NAME", stream.subprotocols, "offered to the server, best first");
  add_list(app, "--subscribe", "JSON", stream.subscribe, "sent after opening, in order");
  add_duration(app, "--silent-after", stream.silent_after,
               "shown as silent when no message came for so long; 0: never");
  add_duration(app, "--ping-every", stream.ping_every, "how often the server is asked for a sign of life");
  add_duration(app, "--dead-after", stream.dead_after, "without any sign of life for so long it is connected anew");
  add_size(app, "--max-message", stream.max_message_bytes, std::uint64_t{1} << 30U,
           "longer messages end the connection");
  add_text(app, "--ca-file", "FILE", stream.ca_file, "certificates to trust instead of the system's");
  add_switch(app, "--stopped", settings->stopped, "add it without starting it");
  add_switch(app, "--replace", settings->replace, "change it where it exists; its owner connects anew");
}

}  // namespace holdfast::cli
