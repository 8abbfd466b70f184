#include "store/dynamodb/connection.hpp"

#include <optional>
#include <string>
#include <utility>

#include "store/dynamodb/client.hpp"
#include "store/dynamodb/credentials.hpp"
#include "store/dynamodb/endpoint.hpp"

namespace holdfast::store::dynamodb {

namespace {

/// Clients with all that they stand on: each member on those before it.
struct Connection {
  Connection(Loop& loop, std::unique_ptr<runtime::HttpTransport> transport_,
             std::unique_ptr<CredentialSource> credentials_, ClientOptions of_table, ClientOptions of_stream)
      : transport(std::move(transport_)),
        credentials(std::move(credentials_)),
        table(loop, *transport, *credentials, budget, std::move(of_table)),
        stream(loop, *transport, *credentials, budget, std::move(of_stream)) {}

  const std::unique_ptr<runtime::HttpTransport> transport;
  const std::unique_ptr<CredentialSource> credentials;
  const std::shared_ptr<RetryBudget> budget = std::make_shared<RetryBudget>();
  Client table, stream;
};

/// One of the two clients, which keeps the connection.
class OneOf final : public Caller {
 public:
  OneOf(std::shared_ptr<Connection> connection, Client& client)
      : connection_(std::move(connection)), client_(client) {}
  void call(Call call, Instant deadline, std::function<void(CallReply)> handler) override {
    client_.call(std::move(call), deadline, std::move(handler));
  }
  [[nodiscard]] ConsumedByKind consumed() const override { return client_.consumed(); }
  [[nodiscard]] CredentialSource* credentials() override { return client_.credentials(); }
  [[nodiscard]] std::optional<Duration> measured_clock_offset() const override {
    return client_.measured_clock_offset();
  }

 private:
  const std::shared_ptr<Connection> connection_;
  Client& client_;
};

}  // namespace

Result<Callers> connect(TableOptions& options, Loop& loop, std::unique_ptr<runtime::HttpTransport> transport,
                        std::unique_ptr<Surroundings> surroundings) {
  const EndpointWish wish{options.region, options.endpoint};
  auto endpoint = find_endpoint("dynamodb", wish, *surroundings);
  if (!endpoint) return tl::unexpected(endpoint.error());
  auto streams =
      streams_endpoint(*endpoint, wish, [&](const std::string& name) { return surroundings->variable(name); });
  if (!streams) return tl::unexpected(streams.error());
  options.region = endpoint->region;
  options.endpoint = endpoint->is_of_region ? "" : endpoint->url;
  auto credentials = standard_chain(loop, *transport, std::move(surroundings), endpoint->region);
  ClientOptions of_table;
  of_table.endpoint = endpoint->url;
  of_table.region = endpoint->region;
  ClientOptions of_stream = of_table;
  of_stream.endpoint = *streams;
  of_stream.target = streams_target;
  const auto connection = std::make_shared<Connection>(loop, std::move(transport), std::move(credentials),
                                                       std::move(of_table), std::move(of_stream));
  return Callers{std::make_unique<OneOf>(connection, connection->table),
                 std::make_unique<OneOf>(connection, connection->stream)};
}

}  // namespace holdfast::store::dynamodb
