#pragma once
#include <cstdint>
#include <string>

#include "runtime/spawn.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::test {

inline constexpr Duration generous = std::chrono::seconds(60);

/// Made by the openssl program at the time of the test: nothing secret is kept in the repository.
struct Certificate {
  std::string certificate_file;
  std::string key_file;
};

/// Signed by itself, so that trusting it means naming it as the authority. `names` as in a subjectAltName:
/// "DNS:localhost,IP:127.0.0.1". A negative number of days: it has expired already.
Certificate make_certificate(const TemporaryFolder& folder, const std::string& name, const std::string& names,
                             int days = 2);

/// A server in another process (tests/peers), from construction to destruction.
class Peer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    bool tls = false;
    std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";  ///< in its certificate
    int days = 2;                                             ///< of its certificate
  };
  /// `program`: a file of tests/peers. Throws with what is missing where it cannot run.
  Peer(const std::string& program, Options options);
  explicit Peer(const std::string& program) : Peer(program, Options()) {}

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// ws:// or wss://, by the address that it listens on or by another name for it.
  [[nodiscard]] std::string url(const std::string& target) const { return url(target, options_.host); }
  [[nodiscard]] std::string url(const std::string& target, const std::string& host) const;
  /// To trust: empty for a plain server.
  [[nodiscard]] std::string ca_file() const { return certificate_.certificate_file; }
  /// The next line that it prints; empty where none came.
  std::string line();

 private:
  Options options_;
  TemporaryFolder folder_;
  Certificate certificate_;
  runtime::Child child_;
  std::uint16_t port_ = 0;
};

}  // namespace holdfast::test
