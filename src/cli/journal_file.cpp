#include "cli/journal_file.hpp"

#include <utility>

#include "cli/options.hpp"
#include "cli/store_session.hpp"
#include "store/open.hpp"
#include "store/place.hpp"

namespace holdfast::cli {

namespace {

/// As it is written into a journal: the same table, wherever the command is called from.
std::string store_name(const std::string& store) {
  if (store::is_remote(store)) return store;
  return "sqlite:" + store::without_links(store::path_of(store)).string();
}

}  // namespace

void add_journal_file(CLI::App& app, std::string& target) {
  add_text(app, "--journal", "FILE", target, "the journal, on this machine's disk");
}

Result<std::unique_ptr<coord::Journal>> open_journal(const std::string& file, const std::string& store, bool create) {
  if (auto checked = StoreSession::check(store); !checked) return tl::unexpected<Error>(checked.error());
  coord::JournalOptions options;
  options.path = file;
  options.store = store_name(store);
  options.place = store::place_of(store);
  options.create = create;
  return coord::Journal::open(std::move(options));
}

Result<Basket> basket_from_words(const std::vector<std::string>& words) {
  Basket basket;
  for (const std::string& word : words) {
    const std::size_t equals = word.rfind('=');
    if (equals == 0 || equals == std::string::npos) return fail(Code::usage, "'" + word + "' is not SKU=COUNT");
    const auto count = parse_number(std::string_view(word).substr(equals + 1), 1, INT64_MAX);
    if (!count) return fail(Code::usage, word + ": " + count.error().detail);
    if (!basket.emplace(word.substr(0, equals), *count).second) {
      return fail(Code::usage, word.substr(0, equals) + " is given more than once");
    }
  }
  if (auto good = check_basket(basket); !good) return tl::unexpected<Error>(good.error());
  return basket;
}

}  // namespace holdfast::cli
