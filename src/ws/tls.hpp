#pragma once
#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "holdfast/error.hpp"
#include "runtime/regular_file.hpp"

namespace holdfast::ws {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslPointer = std::unique_ptr<SSL, FreeSsl>;
using SslContextPointer = std::unique_ptr<SSL_CTX, FreeSsl>;

/// One SSL_CTX per set of trusted certificates, made when it is first asked for, and again when its file has changed.
/// At most `profiles_max`: the one that was not asked for longest goes. TLS 1.2 or newer, the peer's certificate
/// always verified, no session cache, no renegotiation.
class TlsProfiles {
 public:
  static constexpr std::size_t profiles_max = 64;

  /// Empty: the system's certificates. Code::usage where the file has no certificates in it. Valid until the next
  /// call; an SSL made of it keeps it alive.
  Result<SSL_CTX*> get(const std::string& ca_file);
  [[nodiscard]] std::size_t size() const { return profiles_.size(); }

 private:
  struct Profile {
    SslContextPointer context;
    runtime::FileStamp stamp;
    std::uint64_t asked = 0;
  };
  void make_room();

  std::map<std::string, Profile> profiles_;
  std::uint64_t asked_ = 0;
};

/// What went wrong in a handshake, noticed while certificates were verified. Must live as long as the handshake.
struct TlsReport {
  std::string host;
  std::string trouble;  ///< empty: the certificate was good
};

/// A client's end that will accept a certificate for this host only: a DNS name (sent as SNI) or an IP address
/// (checked as one, and not sent). Code::internal where OpenSSL has no memory.
Result<SslPointer> make_client(SSL_CTX* context, TlsReport& report);

/// The oldest error of OpenSSL's queue in words, and empties the queue.
[[nodiscard]] std::string take_tls_error();

}  // namespace holdfast::ws
