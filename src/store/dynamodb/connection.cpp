#include "store/dynamodb/connection.hpp"

#include <utility>

#include "store/dynamodb/endpoint.hpp"

namespace holdfast::store::dynamodb {

Connection::Connection(Loop& loop, std::unique_ptr<runtime::HttpTransport> transport,
                       std::unique_ptr<CredentialSource> credentials, ClientOptions options)
    : transport_(std::move(transport)),
      credentials_(std::move(credentials)),
      client_(loop, *transport_, *credentials_, std::make_shared<RetryBudget>(), std::move(options)) {}

Result<std::unique_ptr<Connection>> connect(TableOptions& options, Loop& loop,
                                            std::unique_ptr<runtime::HttpTransport> transport,
                                            std::unique_ptr<Surroundings> surroundings) {
  auto endpoint = find_endpoint("dynamodb", {options.region, options.endpoint}, *surroundings);
  if (!endpoint) return tl::unexpected(endpoint.error());
  options.region = endpoint->region;
  options.endpoint = endpoint->is_of_region ? "" : endpoint->url;
  auto credentials = standard_chain(loop, *transport, std::move(surroundings), endpoint->region);
  ClientOptions client;
  client.endpoint = endpoint->url;
  client.region = endpoint->region;
  return std::make_unique<Connection>(loop, std::move(transport), std::move(credentials), std::move(client));
}

}  // namespace holdfast::store::dynamodb
