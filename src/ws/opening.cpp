#include "ws/opening.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ws/hub.hpp"
#include "ws/peer.hpp"
#include "ws/words.hpp"

namespace holdfast::ws {
namespace {

constexpr Duration race_stagger = std::chrono::milliseconds(250);  // RFC 8305 section 5
constexpr std::size_t addresses_max = 16;

}  // namespace

Opening::Opening(Peer& peer, ConnectOptions options) : peer_(peer), options_(std::move(options)) {}

void Opening::enter(Phase phase, Duration limit) {
  phase_ = phase;
  peer_.hub().set_deadline(peer_, peer_.hub().loop().instant() + limit);
}

void Opening::fail(Code code, std::string detail) {
  peer_.fail(Error(code, std::move(detail)));
}

void Opening::start() {
  key_ = make_key(peer_.hub().random().take<16>());
  auto request = make_request(options_.url, options_.headers, options_.subprotocols, key_);
  if (!request) return fail(request.error().code, request.error().detail);
  request_ = std::move(*request);
  options_.headers.clear();  // may be secrets: they live in the request until it is sent
  if (options_.url.secure) {
    const auto context = peer_.hub().tls.get(options_.ca_file);
    if (!context) return fail(context.error().code, context.error().detail);
  }
  resolve();
}

void Opening::on_ready() {
  switch (phase_) {
    case Phase::resolving:
    case Phase::connecting:
      return;
    case Phase::tls:
      return step_tls();
    case Phase::upgrading:
      if (request_sent_ < request_.size()) {
        send_request();
        return;
      }
      return read_response();
  }
}

void Opening::on_deadline(Instant now) {
  const std::string where = options_.url.authority();
  switch (phase_) {
    case Phase::resolving:
      return fail(Code::unavailable,
                  "the address of " + options_.url.host + " was not found within " + words(options_.limits.resolve));
    case Phase::connecting:
      return race_on(now);
    case Phase::tls:
      return fail(Code::unavailable,
                  "no end of the TLS handshake with " + where + " within " + words(options_.limits.tls));
    case Phase::upgrading:
      return settle_late();
  }
}

// ---- the name

void Opening::resolve() {
  if (const auto address = parse_address(options_.url.host, options_.url.port)) {
    return on_resolved(std::vector<std::string>{options_.url.host});
  }
  enter(Phase::resolving, options_.limits.resolve);
  // The answer may come inside the call, and an owner that hears of a failure may destroy the engine.
  const std::shared_ptr<Hub> hub = peer_.hub().shared_from_this();
  hub->options().resolve(options_.url.host,
                         [peer = peer_.shared_from_this()](Result<std::vector<std::string>> names) {
                           if (peer->dead() || peer->opening() == nullptr) return;
                           if (peer->opening()->phase_ == Phase::resolving)
                             peer->opening()->on_resolved(std::move(names));
                         });
}

void Opening::on_resolved(Result<std::vector<std::string>> names) {
  if (!names) {
    return fail(names.error().code, "no address for " + options_.url.host + ": " + names.error().detail);
  }
  std::vector<Address> addresses;
  for (const std::string& name : *names) {
    if (const auto address = parse_address(name, options_.url.port)) addresses.push_back(*address);
  }
  if (addresses.empty()) return fail(Code::unavailable, "no address for " + options_.url.host);
  addresses_ = interleave(addresses);
  addresses_.resize(std::min(addresses_.size(), addresses_max));
  attempts_.reserve(addresses_.size());
  phase_ = Phase::connecting;
  try_next_address(peer_.hub().loop().instant());
}

// ---- the race of addresses (RFC 8305): the first that connects wins

void Opening::try_next_address(Instant now) {
  while (next_address_ < addresses_.size()) {
    const Address& address = addresses_[next_address_++];
    next_start_ = now + race_stagger;
    const auto error = start_attempt(address, now);
    if (!error) return set_race_deadline();
    if (*error == 0) return win(attempts_.back());
    out_of_files_ = out_of_files_ || *error == EMFILE || *error == ENFILE;
    lose_attempt(attempts_.back(), connect_trouble(*error, address));
  }
  const bool any_live = std::any_of(attempts_.begin(), attempts_.end(), [](const Attempt& a) { return a.live; });
  if (any_live) return set_race_deadline();
  const bool several = addresses_.size() > 1;
  fail(out_of_files_ ? Code::exhausted : Code::unavailable,
       (several ? "no address of " + options_.url.host + " can be reached: " : "") + troubles_);
}

/// Nothing: it is on its way. Zero: connected at once. Else what went wrong.
std::optional<int> Opening::start_attempt(const Address& address, Instant now) {
  Hub& hub = peer_.hub();
  attempts_.push_back({Socket(hub.loop().context(), hub.cipher), address, now + options_.limits.connect});
  const int descriptor = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  const int connected = ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address.storage), address.size);
  const int error = connected == 0 ? 0 : errno;
  if (error != 0 && error != EINPROGRESS) {
    ::close(descriptor);
    return error;
  }
  attempts_.back().socket.adopt(descriptor);
  if (error == 0) return 0;
  attempts_.back().socket.wait_writable(
      [peer = peer_.shared_from_this(), index = attempts_.size() - 1](const boost::system::error_code& failed) {
        if (failed || peer->dead() || peer->opening() == nullptr) return;
        if (peer->opening()->phase_ == Phase::connecting) peer->opening()->on_attempt_ready(index);
      });
  return std::nullopt;
}

void Opening::on_attempt_ready(std::size_t index) {
  Attempt& attempt = attempts_[index];
  if (!attempt.live) return;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(attempt.socket.handle(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) return win(attempt);
  lose_attempt(attempt, connect_trouble(error, attempt.address));
  // A refusal is no reason to wait for the stagger.
  try_next_address(peer_.hub().loop().instant());
}

void Opening::lose_attempt(Attempt& attempt, std::string trouble) {
  attempt.live = false;
  attempt.socket.close();
  troubles_ += (troubles_.empty() ? "" : "; ") + std::move(trouble);
}

void Opening::race_on(Instant now) {
  for (Attempt& attempt : attempts_) {
    if (attempt.live && attempt.deadline <= now) {
      lose_attempt(attempt,
                   "no answer from " + attempt.address.to_string() + " within " + words(options_.limits.connect));
    }
  }
  const bool any_live = std::any_of(attempts_.begin(), attempts_.end(), [](const Attempt& a) { return a.live; });
  if (!any_live || next_start_ <= now) return try_next_address(now);
  set_race_deadline();
}

void Opening::set_race_deadline() {
  Instant next = next_address_ < addresses_.size() ? next_start_ : Instant::max();
  for (const Attempt& attempt : attempts_) {
    if (attempt.live) next = std::min(next, attempt.deadline);
  }
  peer_.hub().set_deadline(peer_, next);
}

void Opening::win(Attempt& attempt) {
  peer_.socket() = std::move(attempt.socket);
  attempts_.clear();
  const int on = 1;
  ::setsockopt(peer_.socket().handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (options_.url.secure) return start_tls();
  start_upgrade();
}

// ---- TLS

void Opening::start_tls() {
  enter(Phase::tls, options_.limits.tls);
  tls_report_.host = options_.url.host;
  const auto context = peer_.hub().tls.get(options_.ca_file);
  if (!context) return fail(context.error().code, context.error().detail);
  auto ssl = make_client(*context, tls_report_);
  if (!ssl) return fail(ssl.error().code, ssl.error().detail);
  peer_.socket().start_tls(std::move(*ssl));
  step_tls();
}

bool Opening::waits_for(Transfer::Kind kind) {
  if (kind != Transfer::Kind::want_read && kind != Transfer::Kind::want_write) return false;
  peer_.socket().end_turn();
  if (kind == Transfer::Kind::want_read) {
    peer_.wait_for_read();
  } else {
    peer_.wait_for_write();
  }
  return true;
}

void Opening::step_tls() {
  const Transfer step = peer_.socket().handshake();
  if (waits_for(step.kind)) return;
  if (step.kind == Transfer::Kind::some) return start_upgrade();
  const std::string where = options_.url.authority();
  if (step.kind == Transfer::Kind::ended) {
    return fail(Code::unavailable, where + " ended the connection during the TLS handshake");
  }
  if (!tls_report_.trouble.empty()) return fail(Code::denied, where + ": " + tls_report_.trouble);
  fail(Code::unavailable, "no TLS with " + where + ": " + peer_.socket().trouble());
}

// ---- the upgrade

void Opening::start_upgrade() {
  enter(Phase::upgrading, options_.limits.upgrade);
  response_.emplace(key_, options_.subprotocols, options_.limits.header_bytes, peer_.hub().loop().wall());
  send_request();
}

void Opening::send_request() {
  while (request_sent_ < request_.size()) {
    const Transfer sent = peer_.socket().write(std::string_view(request_).substr(request_sent_));
    if (waits_for(sent.kind)) return;
    if (sent.kind != Transfer::Kind::some) return fail_upgrade();
    request_sent_ += sent.bytes;
  }
  // TLS may have received more than its handshake.
  read_response();
}

void Opening::read_response() {
  Hub& hub = peer_.hub();
  auto state = ResponseReader::State::more;
  while (state == ResponseReader::State::more) {
    const Transfer got = peer_.socket().read(hub.buffer(), hub.buffer_bytes(), true);
    if (waits_for(got.kind)) return;
    if (got.kind == Transfer::Kind::failed) return fail_upgrade();
    state = got.kind == Transfer::Kind::ended ? response_->finish() : response_->feed({hub.buffer(), got.bytes});
  }
  settle(state);
}

void Opening::fail_upgrade() {
  fail(Code::unavailable, "during the upgrade at " + options_.url.authority() + " " + peer_.socket().trouble());
}

void Opening::settle(ResponseReader::State state) {
  if (state == ResponseReader::State::open) {
    const Opened opened{response_->subprotocol()};
    return peer_.opened(opened, response_->rest());
  }
  if (state == ResponseReader::State::broken) {
    return fail(Code::corrupt, "the upgrade at " + options_.url.authority() + " failed: " + response_->why());
  }
  Closed closed{.kind = Closed::Kind::refused};
  closed.http_status = response_->status();
  closed.retry_after = response_->retry_after();
  closed.body = response_->body();
  closed.error = Error(Code::unavailable, options_.url.authority() + " answered the upgrade with status " +
                                              std::to_string(closed.http_status));
  peer_.end(closed);
}

/// The time is up. A refusal whose body never ended is still a refusal.
void Opening::settle_late() {
  if (response_->status() != 0) return settle(response_->finish());
  fail(Code::unavailable,
       "no answer to the upgrade from " + options_.url.authority() + " within " + words(options_.limits.upgrade));
}

}  // namespace holdfast::ws
