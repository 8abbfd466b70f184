#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "holdfast/loop.hpp"
#include "runtime/http.hpp"
#include "store/dynamodb/answer.hpp"
#include "store/dynamodb/call.hpp"
#include "store/dynamodb/credentials.hpp"
#include "store/dynamodb/retry.hpp"

namespace holdfast::store::dynamodb {

/// Of DynamoDB Streams, which has an endpoint of its own: streams_endpoint().
inline constexpr const char* streams_target = "DynamoDBStreams_20120810";

struct ClientOptions {
  std::string endpoint;                      ///< "https://dynamodb.eu-west-1.amazonaws.com", "http://127.0.0.1:8000"
  std::string region;                        ///< what signatures are for
  std::string target = "DynamoDB_20120810";  ///< or `streams_target`
  RetryOptions retry;
};

/// Calls of DynamoDB's JSON protocol, each repeated by itself as long as that is useful and surely does no harm, each
/// ending in one of S5's outcomes:
///
///   the attempt                              | then                           | at last
///   -----------------------------------------|--------------------------------|---------------------------------
///   answered                                 |                                | applied
///   condition failed                         |                                | conflict
///   throttled, or not sent at all            | again after a wait             | throttled; unknown after an attempt
///                                            |                                | that may have been carried out
///   no answer, 5xx                           | again after a wait: reads, and | unknown
///                                            | writes that are `repeatable`   |
///   answer damaged                           | reads: again after a wait      | unknown
///   signature's date refused                 | again at once, once, dated by  | rejected
///                                            | the server's clock             |
///   credentials refused                      | again at once, once, with      | rejected
///                                            | those that the source then has |
///   refused for good                         |                                | rejected; unknown after an attempt
///                                            |                                | that may have been carried out
///
/// Everything on the loop's thread. Loop, transport and credentials must outlive it. When it is destroyed its
/// requests are cancelled and their handlers do not run.
class Client final : public Caller {
 public:
  /// `budget` is shared by all clients of the process.
  Client(Loop& loop, runtime::HttpTransport& transport, CredentialSource& credentials,
         std::shared_ptr<RetryBudget> budget, ClientOptions options);
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void call(Call call, Instant deadline, std::function<void(CallReply)> handler) override;

  [[nodiscard]] ConsumedByKind consumed() const override { return consumed_; }
  /// The server's clock minus ours, as signatures are dated; zero until the server refused one for its date.
  [[nodiscard]] Duration clock_offset() const { return clock_offset_; }
  [[nodiscard]] CredentialSource* credentials() override { return &credentials_; }
  [[nodiscard]] std::optional<Duration> measured_clock_offset() const override;

 private:
  /// One call, from call() to its handler.
  struct Pending {
    Call call;
    Instant deadline{};
    std::function<void(CallReply)> handler;
    Consumed* count = nullptr;  // in consumed_
    Credentials credentials;    // of the latest attempt
    Duration clock_offset{};    // of the latest attempt
    runtime::HttpTransport::RequestId request = 0;
    TimerId wait = 0;
    std::size_t tries = 0;
    std::size_t retries_paid = 0;
    bool maybe_applied = false;  // an attempt may have been carried out
    bool clock_corrected = false;
    bool keys_renewed = false;
  };

  void ask_for_credentials(std::uint64_t id);
  void on_credentials(std::uint64_t id, Result<Credentials> credentials);
  void attempt(std::uint64_t id, Pending& pending);
  void on_reply(std::uint64_t id, runtime::HttpReply reply);
  void decide(std::uint64_t id, Pending& pending, Attempted attempted);
  void retry_later(std::uint64_t id, Pending& pending, Attempted attempted);
  [[nodiscard]] bool correct_clock(Pending& pending);
  void settle(std::uint64_t id, Pending& pending, Outcome outcome, Code code, Attempted attempted);
  void finish(std::uint64_t id, CallReply reply);

  Loop& loop_;
  runtime::HttpTransport& transport_;
  CredentialSource& credentials_;
  const std::shared_ptr<RetryBudget> budget_;
  const ClientOptions options_;
  ConsumedByKind consumed_;
  std::unordered_map<std::uint64_t, Pending> pending_;
  std::uint64_t last_id_ = 0;
  Duration clock_offset_{};
  std::string date_;  // header of the latest answer, and when that came
  WallTime date_came_at_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for the credentials that come after the destructor
};

}  // namespace holdfast::store::dynamodb
