#include <memory>

#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"

namespace holdfast::cli {

void add_init(Setup setup) {
  const auto store = std::make_shared<std::string>("sqlite:holdfast.db");
  CLI::App& app = add_command(setup,
                              {.name = "init",
                               .description = "make the table that a fleet shares; does nothing where it is there",
                               .example = "init --store 'dynamodb://feeds?region=eu-west-1'",
                               .exit_codes = "the table could not be made"},
                              [store]() -> Result<void> {
                                const auto session = StoreSession::open(*store, StoreSession::Create::always);
                                if (!session) return tl::unexpected<Error>(session.error());
                                return print((*session)->created() + "\n");
                              });
  add_store(app, *store);
}

}  // namespace holdfast::cli
