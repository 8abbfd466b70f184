#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>

namespace holdfast::bench {

/// A server on 127.0.0.1 that answers DynamoDB's calls at once, in a process of its own, which ends with this. It
/// checks neither signatures nor conditions. Make it while this process has one thread.
class DynamoDbStub {
 public:
  enum class Kind {
    canned,  ///< the same row for every UpdateItem, made beforehand: takes as little as can be
    rows,    ///< keeps `rows` connections that are to run: UpdateItem changes them, Query finds those that are due
  };
  explicit DynamoDbStub(Kind kind, int rows = 0);
  ~DynamoDbStub();
  DynamoDbStub(const DynamoDbStub&) = delete;
  DynamoDbStub& operator=(const DynamoDbStub&) = delete;

  [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// Processor time that it has used so far.
  [[nodiscard]] double cpu_s() const;

 private:
  std::uint16_t port_ = 0;
  pid_t pid_ = 0;
};

/// The key of the stub's row of that number.
[[nodiscard]] std::string stub_key(int number);

}  // namespace holdfast::bench
