// wss://: who is trusted, for which name, and what the owner is told when it is not so (F40).
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <string>

#include "support/certificates.hpp"
#include "support/temporary_folder.hpp"
#include "support/ws_engine_test.hpp"
#include "ws/tls.hpp"

namespace holdfast::ws {
namespace {

using namespace std::chrono_literals;
using test::Authority;
using test::CertificateTerms;

class WsTls : public WsEngineTest {
 protected:
  WsTls() {
    authority.write(ca_file);
    EngineOptions with_resolver;
    with_resolver.resolve = [](const std::string&, ResolveDone done) { done(std::vector<std::string>{"127.0.0.1"}); };
    engine = std::make_unique<Engine>(loop, with_resolver);
  }
  ConnectOptions secure(const std::string& host) const {
    ConnectOptions with = options();
    with.url.secure = true;
    with.url.host = host;
    with.ca_file = ca_file;
    return with;
  }
  /// Connects to a server with this certificate; whether both got as far as the upgrade.
  bool handshake(const std::string& host, const CertificateTerms& terms) {
    return handshake(secure(host), authority.server(terms));
  }
  bool handshake(const ConnectOptions& with, const std::shared_ptr<SSL_CTX>& context) {
    connect(with);
    RawPeer peer = server.accept();
    if (!peer.accept_tls(context.get())) return false;
    const bool asked = run_until(loop, [&] {
      peer.take();
      return has(peer.received, "\r\n\r\n") || owner.is_closed();
    });
    return asked && has(peer.received, "\r\n\r\n");
  }
  std::string trouble() {
    const Closed& closed = wait_closed();
    EXPECT_EQ(closed.kind, Kind::failed);
    return closed.error.detail;
  }

  test::TemporaryFolder folder;
  std::string ca_file = folder.file("authority.pem");
  Authority authority;
};

TEST_F(WsTls, messages_pings_and_the_close_handshake_go_through_tls) {
  connect(secure("feed.example"));
  RawPeer peer = server.accept();
  const auto context = authority.server({.names = "DNS:feed.example"});
  ASSERT_TRUE(peer.accept_tls(context.get()));
  peer.upgrade(frame(0x81, "first"));
  ASSERT_TRUE(wait_messages(1));
  const std::string large(300000, 'x');
  ASSERT_TRUE(peer.send(frame(0x82, large)));
  ASSERT_TRUE(wait_messages(2));
  EXPECT_EQ(owner.messages[1], "b:" + large);
  ASSERT_TRUE(peer.send(frame(0x89, "ping")));
  EXPECT_EQ(peer.take_frame(), (std::pair<unsigned, std::string>{0x8A, "ping"}));
  ASSERT_TRUE(owner.connection->send(large, false));
  EXPECT_EQ(peer.take_frame().second, large);
  ASSERT_TRUE(peer.send(frame(0x88, close_payload(1000, "done"))));
  EXPECT_EQ(wait_closed().reason, "done");
  EXPECT_EQ(peer.take_frame(), (std::pair<unsigned, std::string>{0x88, close_payload(1000)}));
  EXPECT_TRUE(peer.receive_end());
  peer.close();
  EXPECT_TRUE(wait_gone());
}

TEST_F(WsTls, a_file_of_certificates_that_is_a_pipe_is_refused_and_not_waited_for) {
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ConnectOptions with = secure("feed.example");
  with.ca_file = pipe;
  connect(with);
  EXPECT_TRUE(has(trouble(), "it is no regular file"));
}

TEST_F(WsTls, a_file_of_certificates_that_was_replaced_is_read_again) {
  EXPECT_TRUE(handshake("feed.example", {.names = "DNS:feed.example"}));
  owner.connection.reset();
  const Authority successor;
  successor.write(ca_file);
  owner.closed.clear();
  EXPECT_TRUE(handshake(secure("feed.example"), successor.server({.names = "DNS:feed.example"})));
}

TEST_F(WsTls, however_many_files_of_certificates_there_are_few_are_kept) {
  TlsProfiles profiles;
  for (std::size_t i = 0; i < TlsProfiles::profiles_max + 5; ++i) {
    const std::string file = folder.file("ca" + std::to_string(i));
    authority.write(file);
    ASSERT_TRUE(profiles.get(file));
  }
  EXPECT_EQ(profiles.size(), TlsProfiles::profiles_max);
  EXPECT_TRUE(profiles.get(folder.file("ca0"))) << "one that has gone is read again";
}

TEST_F(WsTls, speaks_tls_1_2_too_and_nothing_older) {
  auto context = authority.server({.names = "DNS:feed.example"});
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  EXPECT_TRUE(handshake(secure("feed.example"), context));
  owner.connection.reset();
  context = authority.server({.names = "DNS:feed.example"});
  SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context.get(), TLS1_1_VERSION);
  SSL_CTX_set_security_level(context.get(), 0);
  EXPECT_FALSE(handshake(secure("feed.example"), context));
  EXPECT_TRUE(has(trouble(), "no TLS with feed.example")) << owner.closed[0].error.detail;
}

std::string sni_seen;
int remember_sni(SSL* ssl, int*, void*) {
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  sni_seen = name == nullptr ? "(none)" : name;
  return SSL_TLSEXT_ERR_OK;
}

TEST_F(WsTls, f40_a_name_is_sent_as_sni_and_an_address_is_not) {
  auto context = authority.server({.names = "DNS:feed.example,IP:127.0.0.1"});
  SSL_CTX_set_tlsext_servername_callback(context.get(), &remember_sni);
  EXPECT_TRUE(handshake(secure("feed.example"), context));
  EXPECT_EQ(sni_seen, "feed.example");
  EXPECT_TRUE(handshake(secure("127.0.0.1"), context));
  EXPECT_EQ(sni_seen, "(none)");
}

TEST_F(WsTls, f40_a_certificate_for_another_name_is_refused_and_both_names_are_told) {
  EXPECT_FALSE(handshake("feed.example", {.names = "DNS:other.example,DNS:third.example"}));
  EXPECT_TRUE(has(trouble(), "certificate is for other.example, third.example, not for feed.example"))
      << owner.closed[0].error.detail;
  EXPECT_EQ(owner.closed[0].error.code, Code::denied);
}

TEST_F(WsTls, f40_an_address_is_checked_as_an_address) {
  EXPECT_TRUE(handshake("127.0.0.1", {.names = "IP:127.0.0.1"}));
}

TEST_F(WsTls, f40_an_address_written_as_a_name_does_not_count) {
  EXPECT_FALSE(handshake("127.0.0.1", {.names = "DNS:127.0.0.1"}));
  EXPECT_TRUE(has(trouble(), "not for 127.0.0.1")) << owner.closed[0].error.detail;
}

TEST_F(WsTls, f40_a_certificate_for_another_address_is_refused) {
  EXPECT_FALSE(handshake("127.0.0.1", {.names = "IP:127.0.0.9,IP:::1"}));
  EXPECT_TRUE(has(trouble(), "certificate is for 127.0.0.9, ::1, not for 127.0.0.1")) << owner.closed[0].error.detail;
}

TEST_F(WsTls, f40_a_wildcard_stands_for_one_whole_label) {
  EXPECT_TRUE(handshake("a.feed.example", {.names = "DNS:*.feed.example"}));
  owner.connection.reset();
  EXPECT_FALSE(handshake("a.b.feed.example", {.names = "DNS:*.feed.example"}));
  trouble();
}

TEST_F(WsTls, f40_a_certificate_of_an_authority_that_is_not_trusted_is_refused) {
  const Authority stranger("Some stranger");
  EXPECT_FALSE(handshake(secure("feed.example"), stranger.server({.names = "DNS:feed.example"})));
  EXPECT_TRUE(has(trouble(), "signed by CN = Some stranger, which is not trusted")) << owner.closed[0].error.detail;
}

TEST_F(WsTls, f40_without_a_file_the_system_decides_and_does_not_know_the_tests_authority) {
  ConnectOptions with = secure("feed.example");
  with.ca_file.clear();
  EXPECT_FALSE(handshake(with, authority.server({.names = "DNS:feed.example"})));
  EXPECT_TRUE(has(trouble(), "not trusted")) << owner.closed[0].error.detail;
}

TEST_F(WsTls, f40_an_expired_certificate_is_refused_and_so_is_one_from_the_future) {
  EXPECT_FALSE(handshake("feed.example", {.names = "DNS:feed.example", .days_from = -9, .days_to = -2}));
  EXPECT_TRUE(has(trouble(), "expired on")) << owner.closed[0].error.detail;
  owner.closed.clear();
  EXPECT_FALSE(handshake("feed.example", {.names = "DNS:feed.example", .days_from = 2, .days_to = 9}));
  EXPECT_TRUE(has(trouble(), "valid only from")) << owner.closed[0].error.detail;
}

TEST_F(WsTls, a_file_that_holds_no_certificates_is_a_mistake_of_usage_and_is_named) {
  ConnectOptions with = secure("feed.example");
  with.ca_file = folder.file("missing.pem");
  connect(with);
  EXPECT_EQ(wait_closed().error.code, Code::usage);
  EXPECT_TRUE(has(owner.closed[0].error.detail, "missing.pem")) << owner.closed[0].error.detail;
}

TEST_F(WsTls, a_server_that_does_not_speak_tls_is_said) {
  connect(secure("feed.example"));
  RawPeer peer = server.accept();
  ASSERT_TRUE(peer.send("HTTP/1.1 400 Bad Request\r\n\r\n"));
  EXPECT_TRUE(has(trouble(), "does not speak TLS")) << owner.closed[0].error.detail;
}

TEST_F(WsTls, f43_a_server_that_never_answers_the_handshake_has_a_limit) {
  ConnectOptions with = secure("feed.example");
  with.limits.tls = 50ms;
  connect(with);
  RawPeer peer = server.accept();
  EXPECT_TRUE(has(trouble(), "no end of the TLS handshake")) << owner.closed[0].error.detail;
}

TEST_F(WsTls, a_stream_that_ends_inside_the_handshake_is_said) {
  connect(secure("feed.example"));
  RawPeer peer = server.accept();
  peer.close();
  const std::string said = trouble();
  EXPECT_TRUE(has(said, "during the TLS handshake") || has(said, "reset")) << said;
}

TEST_F(WsTls, records_of_one_connection_never_reach_another) {
  // Both ends are fed in pieces that end inside records; one connection goes away in the middle of the other's turn.
  const auto context = authority.server({.names = "DNS:feed.example"});
  connect(secure("feed.example"));
  RawPeer first = server.accept();
  ASSERT_TRUE(first.accept_tls(context.get()));
  first.upgrade();
  Owner other;
  other.connection = engine->connect(secure("feed.example"), other);
  RawPeer second = server.accept();
  ASSERT_TRUE(second.accept_tls(context.get()));
  second.upgrade();
  ASSERT_TRUE(run_until(loop, [&] { return owner.opened && other.opened; }));
  other.when_message = [&] {
    if (other.messages.size() == 3) other.connection.reset();
  };
  owner.when_message = [&] {
    if (owner.messages.size() == 5) owner.connection->pause();
  };
  std::string to_first;
  std::string to_second;
  for (int i = 0; i < 40; ++i) {
    to_first += frame(0x81, "first " + std::to_string(i) + std::string(3000, '.'));
    to_second += frame(0x81, "second " + std::to_string(i) + std::string(3000, '.'));
  }
  (void)second.send_some(to_second);
  const std::size_t sent = first.send_some(to_first);
  ASSERT_GT(sent, 0U);
  ASSERT_TRUE(run_until(loop, [&] { return other.connection == nullptr && owner.messages.size() >= 5; }));
  owner.connection->resume();
  owner.when_message = nullptr;
  ASSERT_TRUE(first.send(std::string_view(to_first).substr(sent)));
  ASSERT_TRUE(wait_messages(40));
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(owner.messages[i], "t:first " + std::to_string(i) + std::string(3000, '.'));
  }
}

}  // namespace
}  // namespace holdfast::ws
