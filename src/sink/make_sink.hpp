#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "holdfast/error.hpp"
#include "holdfast/sink.hpp"

namespace holdfast::sink {

/// A sink from its name:
///
///     ndjson:DIR[?fsync=always|interval|never&interval=1s&rotate=64MiB&buffer=8MiB]
///     stdout
///
/// `stem` names this worker's incarnation (`worker-incarnation`) and begins the names of its files; what cannot
/// stand in a file name becomes '_'. The folder is made where it is missing (its parent must be there) and tried.
/// Code::usage for an unknown sink, option or value; otherwise what the file system said.
[[nodiscard]] Result<std::unique_ptr<Sink>> make_sink(std::string_view spec, std::string_view stem,
                                                      std::uint64_t seed);

/// Whether the name makes sense, without touching anything.
[[nodiscard]] Result<void> check_sink_spec(std::string_view spec);

}  // namespace holdfast::sink
