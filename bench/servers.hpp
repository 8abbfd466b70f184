#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/spawn.hpp"

// Servers that others wrote, as processes of ours, until the end of their objects: on ports of loopback that are
// free, with nothing kept. Making one throws NotHere where it cannot be started.
namespace holdfast::bench {

/// Gone with all that is in it at the end of this.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Amazon's DynamoDB Local, in memory. From then on this process and its children have credentials that are invented.
class DynamoDbLocal {
 public:
  DynamoDbLocal();
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
  /// The store of that name on it, with more parameters behind.
  [[nodiscard]] std::string url(const std::string& table) const {
    return "dynamodb://" + table + "?region=us-east-1&endpoint=" + endpoint_;
  }

 private:
  runtime::Child process_;
  std::string endpoint_;
};

/// etcd with one member, as it is by default: every entry of its log is synced.
class Etcd {
 public:
  Etcd();
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

 private:
  TemporaryFolder folder_;
  std::string endpoint_;
  runtime::Child process_;
};

/// Redis with its append-only file.
class Redis {
 public:
  /// When the file is synced: "always", before each answer; "everysec"; "no".
  explicit Redis(const std::string& appendfsync);
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Its processor time so far.
  [[nodiscard]] double cpu_s() const;

 private:
  TemporaryFolder folder_;
  std::uint16_t port_;
  runtime::Child process_;
};

/// A connection to Redis, about as little as a client can do: commands go out together, then their answers are read.
class RedisClient {
 public:
  explicit RedisClient(std::uint16_t port);
  ~RedisClient();
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  using Command = std::vector<std::string>;
  /// Answers of one line ("+OK", ":1"), or texts, without what stands before them.
  std::vector<std::string> ask(const std::vector<Command>& commands);

 private:
  std::string line();

  int socket_;
  std::string received_;
  std::size_t read_ = 0;
};

}  // namespace holdfast::bench
