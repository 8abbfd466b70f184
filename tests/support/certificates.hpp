#pragma once
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace holdfast::test {

/// What a certificate made for a test says.
struct CertificateTerms {
  std::string names = "DNS:localhost";  ///< in OpenSSL's notation: "DNS:a.example,IP:127.0.0.1"
  int days_from = -1;                   ///< valid from, in days from now
  int days_to = 30;
};

/// A small certificate authority, made anew for a test.
class Authority {
 public:
  explicit Authority(const std::string& common_name = "Test authority") : key_(new_key()), certificate_(X509_new()) {
    fill(certificate_.get(), key_.get(), common_name, {});
    X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
    extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    sign(certificate_.get());
  }

  /// Writes the authority's certificate, for those who trust it.
  void write(const std::string& path) const {
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr) throw std::runtime_error("cannot write " + path);
    PEM_write_X509(file, certificate_.get());
    std::fclose(file);
  }

  /// A server's TLS, with a certificate issued for it.
  [[nodiscard]] std::shared_ptr<SSL_CTX> server(const CertificateTerms& terms) const {
    const Key key(new_key());
    const Certificate certificate(X509_new());
    fill(certificate.get(), key.get(), "server", terms);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
    if (!terms.names.empty()) extend(certificate.get(), NID_subject_alt_name, terms.names);
    sign(certificate.get());
    std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
    SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
        SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
      throw std::runtime_error("OpenSSL does not take the test's certificate");
    }
    return context;
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  static EVP_PKEY* new_key() { return EVP_EC_gen("P-256"); }

  static void fill(X509* certificate, EVP_PKEY* key, const std::string& common_name, const CertificateTerms& terms) {
    static long serial = 1;
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), terms.days_from * 86400L);
    X509_gmtime_adj(X509_getm_notAfter(certificate), terms.days_to * 86400L);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  }
  static void extend(X509* certificate, int kind, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    if (extension == nullptr) throw std::runtime_error("not an extension: " + value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  void sign(X509* certificate) const { X509_sign(certificate, key_.get(), EVP_sha256()); }

  Key key_;
  Certificate certificate_;
};

}  // namespace holdfast::test
