#pragma once
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/http.hpp"

namespace holdfast::runtime {

/// Signs requests for AWS (Signature Version 4, signature in the Authorization header). Keeps the key of the day,
/// which takes four of five steps, from one signature to the next. Not thread-safe: one per thread.
class SigV4 {
 public:
  /// Throws std::runtime_error where OpenSSL has no SHA-256 or HMAC to give.
  SigV4();
  ~SigV4();  ///< wipes the keys
  SigV4(const SigV4&) = delete;
  SigV4& operator=(const SigV4&) = delete;

  /// Adds X-Amz-Date, X-Amz-Security-Token where there is a token, and Authorization to the request's headers; all
  /// that were there before are signed, and Host as libcurl sends it. The URL's path and query are taken as they are:
  /// percent encoded, without dot segments. `now` is by our clock; the signing's offset is added to it.
  void sign(HttpRequest& request, WallTime now);

 private:
  static constexpr std::size_t digest_bytes = 32;
  using Digest = std::array<unsigned char, digest_bytes>;

  struct FreeDigest {
    void operator()(EVP_MD* digest) const { EVP_MD_free(digest); }
  };
  struct FreeMac {
    void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  };
  struct FreeMacContext {
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
  };

  [[nodiscard]] Digest sha256(std::string_view text) const;
  [[nodiscard]] Digest hmac(std::string_view key, std::string_view text) const;
  void make_key(const AwsSigning& signing, std::string_view day, const std::string& scope);

  std::unique_ptr<EVP_MD, FreeDigest> sha256_;
  std::unique_ptr<EVP_MAC, FreeMac> mac_;
  std::unique_ptr<EVP_MAC_CTX, FreeMacContext> mac_context_;
  // Of the latest signature: what its key was made of, and the key.
  std::string secret_, scope_;
  Digest key_{};
};

}  // namespace holdfast::runtime
