#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A DynamoDB server that others wrote, in a process of its own, on a port of this machine. It is started when the
/// first test asks for it, and shared by all test programs that run at the same time, and by all of one run of ctest:
/// so a test keeps to tables with names of its own (random_table_name()) and lists no others. It ends soon after the
/// last of them, however they end (tests/peers/dynamodb_server.py). Nothing is kept on a disk.
class DynamoDbServer {
 public:
  enum class Kind {
    local,     ///< Amazon's DynamoDB Local: all that AWS has that we use
    dynalite,  ///< an independent one: no transactions, no streams
  };

  /// Waits until it answers. The same object for the rest of this program. Throws std::runtime_error with what is
  /// missing, where it cannot be started. Any thread.
  static const DynamoDbServer& of(Kind kind);
  static const DynamoDbServer& local() { return of(Kind::local); }
  static const DynamoDbServer& dynalite() { return of(Kind::dynalite); }

  DynamoDbServer(const DynamoDbServer&) = delete;
  DynamoDbServer& operator=(const DynamoDbServer&) = delete;
  ~DynamoDbServer();

  /// `http://127.0.0.1:PORT`, without a slash at its end.
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// What a process needs in its environment to speak to it, or to a proxy before it: a region, and keys that are
  /// invented (these servers take any). Nothing of the machine's own AWS configuration is looked at with it.
  [[nodiscard]] static std::vector<std::pair<std::string, std::string>> environment();

  /// Starts one, or joins the one that others use under this name. For tests of this class: others use of().
  DynamoDbServer(Kind kind, const std::string& name);

 private:
  std::string endpoint_;
  std::uint16_t port_ = 0;
  int user_ = -1;  ///< the connection that says that we need it
};

/// A name for a table that nobody else uses: `PREFIX-` and 96 random bits as text.
[[nodiscard]] std::string random_table_name(std::string_view prefix);

}  // namespace holdfast::test
