#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/error.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "runtime/http.hpp"
#include "store/dynamodb/table_url.hpp"

namespace holdfast::store {

/// Makes what a store on another machine is reached with, on the loop that it is opened with. Called where the URL
/// names such a store, and not otherwise: whoever opens stores knows a loop that has sockets, the stores do not.
using MakeTransport = std::function<std::unique_ptr<runtime::HttpTransport>()>;

/// How initialize() makes a table on a server.
using dynamodb::Billing;
using dynamodb::Making;

/// Opens `sqlite:PATH[?sync=full|normal&create=missing|never]`, `dynamodb://TABLE[?…]` (dynamodb/table_url.hpp) or
/// `memory:`. A bad URL is Code::usage; a file that cannot be opened says why. Does not create the table, nor ask a
/// server anything: that is initialize(). May wait for the disk. The process has to ignore SIGPIPE
/// (runtime/signals.hpp) for a store that is reached by a transport.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const std::string& url, Loop& loop,
                                                        const MakeTransport& transport, const Making& making = {});

/// Whether open_store() would make sense of it; nothing is opened.
[[nodiscard]] Result<void> check_store_url(const std::string& url);

/// Whether a server has the table: one that costs money, and that workers may have no permission to make.
[[nodiscard]] bool is_remote(const std::string& url);
/// What the table counts expiries in. Where that is more than a millisecond, they are read back later than they were
/// written, by less than two steps.
[[nodiscard]] Duration expiry_step(const std::string& url);
/// Whether whoever needs the table makes it where it is not there, unasked: never one on a server, nor one whose URL
/// says create=never.
[[nodiscard]] bool may_create(const std::string& url);
/// The same table, for who knows that it was there.
[[nodiscard]] std::string expecting(const std::string& url);
/// The file of a table that is in one.
[[nodiscard]] std::string path_of(const std::string& url);
/// Why a table counts as away whose file is not there, for who must not make another one in its place: that would be
/// empty. Nothing: it is there, or in no file.
[[nodiscard]] std::optional<std::string> absent_file(const std::string& url);

}  // namespace holdfast::store
