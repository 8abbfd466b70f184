#include "sink/make_sink.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/units.hpp"
#include "sink/buffered_sink.hpp"
#include "sink/descriptor_output.hpp"
#include "sink/files.hpp"
#include "sink/ndjson_output.hpp"

namespace holdfast::sink {
namespace {

constexpr std::string_view ndjson_prefix = "ndjson:";
constexpr std::string_view stdout_name = "stdout";
constexpr std::uint64_t rotate_bytes_min = 4096;
constexpr std::uint64_t buffer_bytes_min = std::uint64_t{64} << 10U;
constexpr std::uint64_t buffer_bytes_max = std::uint64_t{4} << 30U;

struct Spec {
  bool to_stdout = false;
  NdjsonOptions ndjson;
  BufferedSinkOptions sink;
};

tl::unexpected<Error> bad_option(std::string_view name, const std::string& why) {
  return fail(Code::usage, "sink option '" + std::string(name) + "' " + why);
}

Result<void> read_option(std::string_view name, std::string_view value, Spec& spec) {
  if (name == "fsync") {
    if (value == "always") {
      spec.sink.sync = Sync::always;
    } else if (value == "interval") {
      spec.sink.sync = Sync::interval;
    } else if (value == "never") {
      spec.sink.sync = Sync::never;
    } else {
      return bad_option(name, "must be always, interval or never");
    }
    return {};
  }
  if (name == "interval") {
    const Result<Duration> interval = runtime::parse_duration(value);
    if (!interval) return bad_option(name, "has a bad value: " + interval.error().detail);
    if (*interval < std::chrono::milliseconds(1) || *interval > std::chrono::minutes(1))
      return bad_option(name, "must be between 1ms and 1m");
    spec.sink.interval = *interval;
    return {};
  }
  if (name == "rotate" || name == "buffer") {
    const Result<std::uint64_t> size = runtime::parse_size(value);
    if (!size) return bad_option(name, "has a bad value: " + size.error().detail);
    if (name == "rotate") {
      if (*size < rotate_bytes_min) return bad_option(name, "must be at least 4KiB");
      spec.ndjson.rotate_bytes = *size;
      return {};
    }
    if (*size < buffer_bytes_min || *size > buffer_bytes_max)
      return bad_option(name, "must be between 64KiB and 4GiB");
    spec.sink.high_water_bytes = *size;
    spec.sink.low_water_bytes = *size / 4;
    return {};
  }
  return fail(Code::usage, "unknown sink option '" + std::string(name.substr(0, 40)) +
                               "': ndjson has fsync, interval, rotate and buffer");
}

Result<Spec> parse(std::string_view text) {
  Spec spec;
  if (text == stdout_name) {
    spec.to_stdout = true;
    spec.sink.sync = Sync::never;
    spec.sink.piece_bytes = DescriptorOutput::pipe_bytes;
    return spec;
  }
  if (!text.starts_with(ndjson_prefix))
    return fail(Code::usage,
                "unknown sink '" + std::string(text.substr(0, 60)) + "': there are ndjson:DIR and stdout");
  text.remove_prefix(ndjson_prefix.size());
  const std::size_t mark = text.find('?');
  spec.ndjson.folder = text.substr(0, mark);
  if (spec.ndjson.folder.empty()) return fail(Code::usage, "the sink names no folder: write ndjson:DIR");
  std::string_view rest = mark == std::string_view::npos ? std::string_view{} : text.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view option = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), option.size() + 1));
    const std::size_t equals = option.find('=');
    const std::string_view value = equals == std::string_view::npos ? std::string_view{} : option.substr(equals + 1);
    if (const Result<void> read = read_option(option.substr(0, equals), value, spec); !read)
      return tl::unexpected(read.error());
  }
  spec.ndjson.fsync = spec.sink.sync != Sync::never;
  // Nothing is acknowledged sooner by being written sooner.
  if (spec.sink.sync == Sync::interval) spec.sink.linger = spec.sink.interval / 20;
  return spec;
}

std::string file_name_of(std::string_view stem) {
  std::string name(stem.substr(0, 200));
  for (char& c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                       c == '_' || c == '.';
    if (!plain) c = '_';
  }
  if (name.empty() || name.front() == '.') name.insert(name.begin(), '_');
  return name;
}

/// A sink that cannot work at all is told before anything is claimed.
Result<void> try_folder(const std::string& folder) {
  const auto failed = [&folder](int error) {
    const Code code = error == EACCES || error == EROFS || error == EPERM ? Code::denied : Code::not_found;
    return fail(code, "cannot write into the sink's folder " + folder + ": " + std::strerror(error) + ": " +
                          (code == Code::denied ? "give this user the right to write it, or name another"
                           : error == ENOTDIR || error == EEXIST
                               ? "there is a file of that name: name another folder"
                               : "only the last folder of a path is made: make the one above it, or name another"));
  };
  if (const int made = RealFiles().make_folder(folder); made < 0) return failed(-made);
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return failed(errno);
  if (!S_ISDIR(status.st_mode)) return failed(ENOTDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return failed(errno);
  return {};
}

}  // namespace

Result<void> check_sink_spec(std::string_view spec) {
  if (const Result<Spec> parsed = parse(spec); !parsed) return tl::unexpected(parsed.error());
  return {};
}

Result<std::unique_ptr<Sink>> make_sink(std::string_view text, std::string_view stem, std::uint64_t seed) {
  Result<Spec> spec = parse(text);
  if (!spec) return tl::unexpected(spec.error());
  spec->sink.seed = seed;
  if (spec->to_stdout) {
    return std::make_unique<BufferedSink>(std::make_unique<DescriptorOutput>(STDOUT_FILENO), std::move(spec->sink));
  }
  if (const Result<void> tried = try_folder(spec->ndjson.folder); !tried) return tl::unexpected(tried.error());
  spec->ndjson.stem = file_name_of(stem);
  auto output = std::make_unique<NdjsonOutput>(std::make_unique<RealFiles>(), std::move(spec->ndjson));
  return std::make_unique<BufferedSink>(std::move(output), std::move(spec->sink));
}

}  // namespace holdfast::sink
