#pragma once
#include <memory>

#include "holdfast/error.hpp"
#include "store/dynamodb/call.hpp"
#include "store/dynamodb/client.hpp"
#include "store/dynamodb/credentials.hpp"
#include "store/dynamodb/surroundings.hpp"
#include "store/dynamodb/table_url.hpp"

namespace holdfast::store::dynamodb {

/// A client of one table's server with all that it stands on. Everything on the loop's thread, which must outlive it.
class Connection final : public Caller {
 public:
  Connection(Loop& loop, std::unique_ptr<runtime::HttpTransport> transport,
             std::unique_ptr<CredentialSource> credentials, ClientOptions options);

  void call(Call call, Instant deadline, std::function<void(CallReply)> handler) override {
    client_.call(std::move(call), deadline, std::move(handler));
  }

  [[nodiscard]] ConsumedByKind consumed() const override { return client_.consumed(); }
  [[nodiscard]] const Client& client() const { return client_; }

 private:
  // Each stands on those before it.
  const std::unique_ptr<runtime::HttpTransport> transport_;
  const std::unique_ptr<CredentialSource> credentials_;
  Client client_;
};

/// Finds out whom to ask for the table and how to sign, as AWS's own tools would, and completes `options` with it:
/// its region, and its endpoint where that is not AWS's own. Waits for the disk. Code::usage says what is missing.
[[nodiscard]] Result<std::unique_ptr<Connection>> connect(TableOptions& options, Loop& loop,
                                                          std::unique_ptr<runtime::HttpTransport> transport,
                                                          std::unique_ptr<Surroundings> surroundings);

}  // namespace holdfast::store::dynamodb
