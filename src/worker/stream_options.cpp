#include "worker/stream_options.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include "core/utf8.hpp"
#include "runtime/secret.hpp"
#include "runtime/units.hpp"
#include "worker/one_line.hpp"
#include "worker/resume_template.hpp"

namespace holdfast::worker {
namespace {

constexpr std::size_t message_bytes_max = std::size_t{1} << 30U;
constexpr std::size_t name_bytes_max = 128;
constexpr std::size_t list_max = 100;
constexpr std::size_t text_bytes_max = std::size_t{64} << 10U;
constexpr std::size_t subscribe_bytes_max = std::size_t{512} << 10U;
constexpr Duration silent_after_max = std::chrono::hours(24 * 30);
constexpr Duration liveness_max = std::chrono::hours(1);

// Set by the handshake itself, or changing what the answer means.
constexpr std::array<std::string_view, 11> reserved_headers{"host",
                                                            "upgrade",
                                                            "connection",
                                                            "content-length",
                                                            "transfer-encoding",
                                                            "sec-websocket-key",
                                                            "sec-websocket-version",
                                                            "sec-websocket-extensions",
                                                            "sec-websocket-protocol",
                                                            "sec-websocket-accept",
                                                            "te"};

tl::unexpected<Error> wrong(std::string_view option, std::string_view why) {
  return fail(Code::usage, "option '" + std::string(option) + "' " + std::string(why));
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool is_token(std::string_view text) {  // RFC 9110, section 5.6.2
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= name_bytes_max && std::ranges::all_of(text, allowed);
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text,
                             [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; });
}

Result<void> check_pointer(std::string_view pointer) {
  if (pointer.empty()) return {};
  if (pointer.front() != '/')
    return wrong("seq.pointer", "is a JSON pointer and begins with '/', as in /seq or /data/0/id");
  if (pointer.size() > 1024 || !is_utf8(pointer))
    return wrong("seq.pointer", "is longer than 1024 bytes or no UTF-8");
  for (std::size_t at = pointer.find('~'); at != std::string_view::npos; at = pointer.find('~', at + 1)) {
    const char next = at + 1 < pointer.size() ? pointer[at + 1] : '\0';
    if (next != '0' && next != '1')
      return wrong("seq.pointer", "has a '~' that is neither ~0 (for ~) nor ~1 (for /)");
  }
  return {};
}

Result<void> check_headers(const std::vector<std::pair<std::string, std::string>>& headers) {
  if (headers.size() > list_max) return wrong("headers", "has more than 100 headers");
  std::set<std::string> names;
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) return wrong("headers", "has a name that no HTTP header can have");
    const std::string key = lower(name);
    if (std::ranges::find(reserved_headers, key) != reserved_headers.end())
      return wrong("headers", "sets " + name + ", which the WebSocket handshake sets itself");
    if (!names.insert(key).second) return wrong("headers", "sets " + name + " twice");
    if (has_control(value))
      return wrong("headers", "has a line break or another control character in the value of " + name);
    if (value.size() > 8192) return wrong("headers", "has a value of more than 8 KiB for " + name);
    if (value == "env:" || value == "file:") return wrong("headers", "names no variable or file for " + name);
  }
  return {};
}

Result<void> check_subprotocols(const std::vector<std::string>& subprotocols) {
  if (subprotocols.size() > list_max) return wrong("subprotocols", "has more than 100 elements");
  std::set<std::string> seen;
  for (const std::string& subprotocol : subprotocols) {
    if (!is_token(subprotocol))
      return wrong("subprotocols", "has an element that is not one word of plain characters");
    if (!seen.insert(subprotocol).second) return wrong("subprotocols", "has " + subprotocol + " twice");
  }
  return {};
}

Result<void> check_subscribe(const StreamOptions& options) {
  if (options.subscribe.size() > list_max) return wrong("subscribe", "has more than 100 messages");
  const auto marks = std::ranges::count(options.subscribe, resume_mark);
  if (marks > 1) return wrong("subscribe", "has {resume} twice");
  if (marks == 1 && options.resume_message.empty())
    return wrong("subscribe", "says where the resume message goes ({resume}), but there is no resume.message");
  std::size_t total = options.resume_message.size();
  for (const std::string& message : options.subscribe) {
    total += message.size();
    if (message.empty() || message.size() > text_bytes_max || !is_utf8(message))
      return wrong("subscribe", "has a message that is empty, longer than 64 KiB or no UTF-8");
  }
  // So that all of it fits into the connection's send queue at once.
  if (total > subscribe_bytes_max) return wrong("subscribe", "is longer than 512 KiB in all");
  return {};
}

Result<void> check_times(const StreamOptions& options) {
  if (options.silent_after < Duration::zero() || options.silent_after > silent_after_max)
    return wrong("silent_after", "must be between 0 (never) and 30d");
  if (options.ping_every < std::chrono::milliseconds(100) || options.ping_every > liveness_max)
    return wrong("ping_every", "must be between 100ms and 1h");
  if (options.dead_after > 2 * liveness_max) return wrong("dead_after", "must be at most 2h");
  if (options.dead_after <= options.ping_every)
    return wrong("dead_after", "must be longer than ping_every: an answer to the ping needs time");
  return {};
}

// Readers of single options. Each gives the sentence of what is wrong, or nothing.

Result<void> read_text(std::string_view name, const Value& value, std::string& into) {
  const std::string* text = value.as_string();
  if (text == nullptr) return wrong(name, "must be text");
  into = *text;
  return {};
}

Result<void> read_bool(std::string_view name, const Value& value, bool& into) {
  const bool* flag = value.as_bool();
  if (flag == nullptr) return wrong(name, "must be true or false");
  into = *flag;
  return {};
}

Result<void> read_duration(std::string_view name, const Value& value, Duration& into) {
  const std::string* text = value.as_string();
  if (text == nullptr) return wrong(name, "must be text with a unit, such as \"30s\"");
  const Result<Duration> duration = runtime::parse_duration(*text);
  if (!duration) return wrong(name, "has a bad value: " + duration.error().detail);
  into = *duration;
  return {};
}

Result<void> read_size(std::string_view name, const Value& value, std::size_t& into) {
  if (const std::int64_t* number = value.as_int(); number != nullptr && *number >= 0) {
    into = static_cast<std::size_t>(*number);
    return {};
  }
  const std::string* text = value.as_string();
  if (text == nullptr) return wrong(name, "must be a number of bytes, or text such as \"1MiB\"");
  const Result<std::uint64_t> size = runtime::parse_size(*text);
  if (!size) return wrong(name, "has a bad value: " + size.error().detail);
  into = *size;
  return {};
}

Result<void> read_list(std::string_view name, const Value& value, std::vector<std::string>& into) {
  const Value::List* list = value.as_list();
  if (list == nullptr) return wrong(name, "must be a list of texts");
  for (const Value& element : *list) {
    const std::string* text = element.as_string();
    if (text == nullptr) return wrong(name, "must be a list of texts");
    into.push_back(*text);
  }
  return {};
}

Result<void> read_headers(const Value& value, StreamOptions& into) {
  const Value::Map* map = value.as_map();
  if (map == nullptr) return wrong("headers", "must be a map from names to texts");
  for (const auto& [name, content] : *map) {
    const std::string* text = content.as_string();
    if (text == nullptr) return wrong("headers", "must be a map from names to texts");
    into.headers.emplace_back(name, *text);
  }
  return {};
}

Result<void> read_seq_missing(const Value& value, StreamOptions& into) {
  const std::string* text = value.as_string();
  if (text != nullptr && *text == "deliver") {
    into.seq_missing = StreamOptions::SeqMissing::deliver;
  } else if (text != nullptr && *text == "drop") {
    into.seq_missing = StreamOptions::SeqMissing::drop;
  } else {
    return wrong("seq.missing", "must be \"deliver\" or \"drop\"");
  }
  return {};
}

constexpr std::array<std::string_view, 14> option_names{
    "resume.query", "resume.inclusive", "resume.message",    "seq.pointer", "seq.missing",
    "seq.sparse",   "headers",          "subprotocols",      "subscribe",   "silent_after",
    "ping_every",   "dead_after",       "max_message_bytes", "ca_file"};

Result<void> read_option(const std::string& name, const Value& value, StreamOptions& into) {
  if (name == "resume.query") return read_text(name, value, into.resume_query);
  if (name == "resume.inclusive") return read_bool(name, value, into.resume_inclusive);
  if (name == "resume.message") return read_text(name, value, into.resume_message);
  if (name == "seq.pointer") return read_text(name, value, into.seq_pointer);
  if (name == "seq.missing") return read_seq_missing(value, into);
  if (name == "seq.sparse") return read_bool(name, value, into.seq_sparse);
  if (name == "headers") return read_headers(value, into);
  if (name == "subprotocols") return read_list(name, value, into.subprotocols);
  if (name == "subscribe") return read_list(name, value, into.subscribe);
  if (name == "silent_after") return read_duration(name, value, into.silent_after);
  if (name == "ping_every") return read_duration(name, value, into.ping_every);
  if (name == "dead_after") return read_duration(name, value, into.dead_after);
  if (name == "max_message_bytes") return read_size(name, value, into.max_message_bytes);
  if (name == "ca_file") return read_text(name, value, into.ca_file);
  std::string known;
  for (const std::string_view each : option_names) {
    if (!known.empty()) known += each == option_names.back() ? " and " : ", ";
    known += each;
  }
  return fail(Code::usage, "unknown option '" + one_line(name, 60) + "': there are " + known);
}

Value::List to_list(const std::vector<std::string>& texts) {
  Value::List list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

}  // namespace

bool StreamOptions::is_option(std::string_view name) {
  return std::find(option_names.begin(), option_names.end(), name) != option_names.end();
}

Result<StreamOptions> StreamOptions::from_row(const Row& row) {
  StreamOptions options;
  const std::string_view url_text = row.text(attribute::url);
  if (url_text.empty()) return fail(Code::usage, "the row has no ws_url: it does not say what to connect to");
  Result<ws::Url> parsed = ws::parse_url(url_text);
  if (!parsed) return tl::unexpected(parsed.error());
  options.url = *std::move(parsed);

  if (const Value* value = row.find(attribute::options); value != nullptr && *value != Value(nullptr)) {
    const Value::Map* map = value->as_map();
    if (map == nullptr) return fail(Code::usage, "the row's options are not a map");
    for (const auto& [name, content] : *map) {
      if (const Result<void> read = read_option(name, content, options); !read) return tl::unexpected(read.error());
    }
  }
  if (const Result<void> checked = options.check(); !checked) return tl::unexpected(checked.error());
  return options;
}

Result<void> StreamOptions::check() const {
  if (resume_query.size() > name_bytes_max || has_control(resume_query) ||
      resume_query.find_first_of(" &=#") != std::string::npos)
    return wrong("resume.query", "is the plain name of one query parameter, such as since");
  if (resume_message.size() > text_bytes_max || !is_utf8(resume_message))
    return wrong("resume.message", "is longer than 64 KiB or no UTF-8");
  if (const auto parsed = ResumeTemplate::parse(resume_message); !parsed) return tl::unexpected(parsed.error());
  if (resume_inclusive && resume_query.empty())
    return wrong("resume.inclusive", "says what the number in resume.query means, but there is no resume.query");
  if (Result<void> checked = check_pointer(seq_pointer); !checked) return checked;
  if (seq_missing != SeqMissing::deliver && seq_pointer.empty())
    return wrong("seq.missing", "says what to do where seq.pointer finds nothing, but there is no seq.pointer");
  if (seq_sparse && seq_pointer.empty())
    return wrong("seq.sparse", "says that the numbers at seq.pointer leave some out, but there is no seq.pointer");
  if (Result<void> checked = check_headers(headers); !checked) return checked;
  if (Result<void> checked = check_subprotocols(subprotocols); !checked) return checked;
  if (Result<void> checked = check_subscribe(*this); !checked) return checked;
  if (Result<void> checked = check_times(*this); !checked) return checked;
  if (max_message_bytes < 1 || max_message_bytes > message_bytes_max)
    return wrong("max_message_bytes", "must be between 1 and 1GiB");
  if (has_control(ca_file)) return wrong("ca_file", "has a control character in it");
  return {};
}

Attributes StreamOptions::to_row() const {
  const StreamOptions defaults;
  Value::Map map;
  if (!resume_query.empty()) map.emplace("resume.query", resume_query);
  if (resume_inclusive) map.emplace("resume.inclusive", true);
  if (!resume_message.empty()) map.emplace("resume.message", resume_message);
  if (!seq_pointer.empty()) map.emplace("seq.pointer", seq_pointer);
  if (seq_missing == SeqMissing::drop) map.emplace("seq.missing", "drop");
  if (seq_sparse) map.emplace("seq.sparse", true);
  if (!headers.empty()) {
    Value::Map names;
    for (const auto& [name, value] : headers) names.emplace(name, value);
    map.emplace("headers", std::move(names));
  }
  if (!subprotocols.empty()) map.emplace("subprotocols", to_list(subprotocols));
  if (!subscribe.empty()) map.emplace("subscribe", to_list(subscribe));
  if (silent_after != defaults.silent_after) map.emplace("silent_after", runtime::write_duration(silent_after));
  if (ping_every != defaults.ping_every) map.emplace("ping_every", runtime::write_duration(ping_every));
  if (dead_after != defaults.dead_after) map.emplace("dead_after", runtime::write_duration(dead_after));
  if (max_message_bytes != defaults.max_message_bytes)
    map.emplace("max_message_bytes", static_cast<std::int64_t>(max_message_bytes));
  if (!ca_file.empty()) map.emplace("ca_file", ca_file);

  Attributes attributes;
  attributes.emplace(attribute::url, url.to_string());
  attributes.emplace(attribute::options, std::move(map));
  return attributes;
}

}  // namespace holdfast::worker
