#include "ws/tls.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>

#include "ws/http_text.hpp"

namespace holdfast::ws {
namespace {

std::string name_of(const X509_NAME* name) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  if (!out || X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB) < 0) return "?";
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return http::harmless(std::string_view(text, size > 0 ? static_cast<std::size_t>(size) : 0), 120);
}

std::string address_text(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(address) != 16) return "?";
  inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size());
  return text.data();
}

/// The names that a certificate is for, as a person would say them.
std::string names_of(const X509* certificate) {
  std::string result;
  int shown = 0;
  GENERAL_NAMES* names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    std::string text;
    if (name->type == GEN_DNS) {
      text = http::harmless({reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                             static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName))},
                            120);
    } else if (name->type == GEN_IPADD) {
      text = address_text(name->d.iPAddress);
    } else {
      continue;
    }
    if (++shown > 4) {
      result += ", ...";
      break;
    }
    result += (result.empty() ? "" : ", ") + text;
  }
  GENERAL_NAMES_free(names);
  return result.empty() ? name_of(X509_get_subject_name(certificate)) : result;
}

std::string date_of(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "?";
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

std::string trouble_of(X509_STORE_CTX* store, const std::string& host) {
  const int error = X509_STORE_CTX_get_error(store);
  const X509* certificate = X509_STORE_CTX_get_current_cert(store);
  if (certificate == nullptr) return std::string("certificate: ") + X509_verify_cert_error_string(error);
  switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "certificate is for " + names_of(certificate) + ", not for " + host;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "certificate of " + names_of(certificate) + " expired on " + date_of(X509_get0_notAfter(certificate));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "certificate of " + names_of(certificate) + " is valid only from " +
             date_of(X509_get0_notBefore(certificate)) + " on";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "certificate of " + names_of(certificate) + " is signed by itself and not among those trusted";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return "certificate is signed by " + name_of(X509_get_issuer_name(certificate)) + ", which is not trusted";
    default:
      return "certificate of " + names_of(certificate) + ": " + X509_verify_cert_error_string(error);
  }
}

int on_verified(int good, X509_STORE_CTX* store) {
  if (good == 1) return 1;
  const auto* ssl = static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* report = static_cast<TlsReport*>(SSL_get_app_data(ssl));
  if (report != nullptr && report->trouble.empty()) report->trouble = trouble_of(store, report->host);
  return 0;
}

constexpr std::size_t ca_file_bytes_max = std::size_t{8} << 20U;

/// Trusts the certificates of a PEM text, and its lists of revoked ones. False where it has no certificate.
bool trust(SSL_CTX* context, const std::string& text) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                                                      &BIO_free);
  if (!bio) return false;
  char no_password[] = "";  // or OpenSSL would ask on the terminal for that of a key
  STACK_OF(X509_INFO)* found = PEM_X509_INFO_read_bio(bio.get(), nullptr, nullptr, no_password);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  bool any = false;
  for (int i = 0; i < sk_X509_INFO_num(found); ++i) {
    const X509_INFO* info = sk_X509_INFO_value(found, i);
    if (info->x509 != nullptr && X509_STORE_add_cert(store, info->x509) == 1) any = true;
    if (info->crl != nullptr) X509_STORE_add_crl(store, info->crl);
  }
  sk_X509_INFO_pop_free(found, X509_INFO_free);
  return any;
}

Result<SslContextPointer> make_context(const std::string& ca_file) {
  ERR_clear_error();
  SslContextPointer context(SSL_CTX_new(TLS_client_method()));
  if (!context) return fail(Code::internal, "TLS cannot be set up: " + take_tls_error());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, on_verified);
  if (ca_file.empty()) {
    if (SSL_CTX_set_default_verify_paths(context.get()) == 1) return context;
    return fail(Code::usage, "no certificates can be read from the system's store: " + take_tls_error());
  }
  // Read by us: OpenSSL would wait for ever for a pipe that nobody writes to, and the loop with it.
  const Result<std::string> text = runtime::read_regular_file(ca_file, "the certificates in", ca_file_bytes_max);
  if (!text) return fail(Code::usage, text.error().detail);
  if (!trust(context.get(), *text)) {
    return fail(Code::usage, "no certificates can be read from '" + ca_file + "': " + take_tls_error());
  }
  ERR_clear_error();
  return context;
}

}  // namespace

Result<SSL_CTX*> TlsProfiles::get(const std::string& ca_file) {
  runtime::FileStamp stamp;
  if (!ca_file.empty())
    stamp = runtime::stamp_of(ca_file);  // before it is read: what changes meanwhile is seen later
  const auto found = profiles_.find(ca_file);
  if (found != profiles_.end() && found->second.stamp == stamp) {
    found->second.asked = ++asked_;
    return found->second.context.get();
  }
  Result<SslContextPointer> context = make_context(ca_file);
  if (!context) return tl::unexpected(context.error());
  if (found == profiles_.end()) make_room();
  Profile& profile = profiles_[ca_file];
  profile = {*std::move(context), stamp, ++asked_};
  return profile.context.get();
}

void TlsProfiles::make_room() {
  if (profiles_.size() < profiles_max) return;
  const auto oldest = std::min_element(profiles_.begin(), profiles_.end(), [](const auto& left, const auto& right) {
    return left.second.asked < right.second.asked;
  });
  profiles_.erase(oldest);
}

Result<SslPointer> make_client(SSL_CTX* context, TlsReport& report) {
  ERR_clear_error();
  SslPointer ssl(SSL_new(context));
  if (!ssl) return fail(Code::exhausted, "TLS cannot be set up: " + take_tls_error());
  SSL_set_app_data(ssl.get(), &report);
  SSL_set_connect_state(ssl.get());
  std::array<unsigned char, sizeof(in6_addr)> address{};
  std::string name = report.host;
  if (name.ends_with('.')) name.pop_back();  // the root of the DNS is in no certificate
  const char* host = name.c_str();
  const bool literal =
      inet_pton(AF_INET, host, address.data()) == 1 || inet_pton(AF_INET6, host, address.data()) == 1;
  int done = 1;
  if (literal) {
    done = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host);
  } else {
    SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    done = SSL_set1_host(ssl.get(), host) == 1 && SSL_set_tlsext_host_name(ssl.get(), host) == 1 ? 1 : 0;
  }
  if (done != 1) return fail(Code::usage, "no certificate can be for the host '" + report.host + "'");
  return ssl;
}

std::string take_tls_error() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (error == 0) return "unknown error";
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER) {
    return "the other side does not speak TLS on this port";
  }
  const char* reason = ERR_reason_error_string(error);
  return reason != nullptr ? reason : "error " + std::to_string(error);
}

}  // namespace holdfast::ws
