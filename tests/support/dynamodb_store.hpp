#pragma once
#include <memory>
#include <string>
#include <utility>

#include "holdfast/store.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/http_client.hpp"
#include "store/dynamodb/client.hpp"
#include "store/dynamodb/dynamodb_store.hpp"
#include "store/dynamodb/table_url.hpp"

namespace holdfast::test {

/// A client with all that it stands on, for a server of tests: any credentials will do there.
struct DynamoDbConnection final : store::dynamodb::Caller {
  DynamoDbConnection(runtime::AsioLoop& loop, const std::string& endpoint, store::dynamodb::RetryOptions retry,
                     const std::string& target = store::dynamodb::ClientOptions{}.target)
      : transport(loop),
        credentials(store::dynamodb::fixed_credentials(loop, {"test", "test", "", {}, "test"})),
        client(loop, transport, *credentials, std::make_shared<store::dynamodb::RetryBudget>(),
               {.endpoint = endpoint, .region = "us-east-1", .target = target, .retry = retry}) {}
  void call(store::dynamodb::Call call, Instant deadline,
            std::function<void(store::dynamodb::CallReply)> handler) override {
    client.call(std::move(call), deadline, std::move(handler));
  }

  runtime::HttpClient transport;
  std::unique_ptr<store::dynamodb::CredentialSource> credentials;
  store::dynamodb::Client client;
};

/// The store of `url` ("dynamodb://TABLE?…") on the server, or the proxy, at `endpoint`.
inline std::unique_ptr<Store> open_dynamodb(runtime::AsioLoop& loop, const std::string& endpoint,
                                            const std::string& url, store::dynamodb::RetryOptions retry = {},
                                            const store::dynamodb::Making& making = {}) {
  store::dynamodb::TableOptions options = store::dynamodb::parse_table_url(url).value();
  options.making = making;
  return store::dynamodb::make_dynamodb_store(
      std::move(options), std::make_unique<DynamoDbConnection>(loop, endpoint, retry), loop,
      std::make_unique<DynamoDbConnection>(loop, endpoint, retry, store::dynamodb::streams_target));
}

}  // namespace holdfast::test
