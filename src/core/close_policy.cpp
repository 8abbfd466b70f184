#include "core/close_policy.hpp"

#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

Response judge_close(std::uint16_t code) {
  switch (code) {
    case 1002:  // protocol error
    case 1003:  // unsupported data
    case 1007:  // not UTF-8
    case 1008:  // policy
    case 1009:  // too big
    case 1010:  // an extension that we do not offer
      return Response::park;
    case 1012:  // restarting
    case 1013:  // try again later
    case 1014:  // bad gateway
      return Response::retry_later;
    case 3000:  // IANA: unauthorized
    case 3003:  // IANA: forbidden
      return Response::refresh_credentials;
    default:
      return Response::retry;
  }
}

Response judge_status(int status) {
  switch (status) {
    case 401:
    case 403:
    case 407:
      return Response::refresh_credentials;
    case 408:
    case 425:
      return Response::retry;
    case 429:
    case 503:
      return Response::retry_later;
    default:
      return status >= 500 ? Response::retry : Response::park;
  }
}

std::string_view meaning(std::uint16_t code) {
  switch (code) {
    case 1002:
      return "protocol error";
    case 1003:
      return "data of a kind that is not accepted";
    case 1007:
      return "text that is not UTF-8";
    case 1008:
      return "against the policy";
    case 1009:
      return "message too big";
    case 1010:
      return "an extension is required that is not offered";
    case 3000:
      return "unauthorized";
    case 3003:
      return "forbidden";
    default:
      return {};
  }
}

std::string_view meaning(int status) {
  switch (status) {
    case 400:
      return "bad request";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return "not found";
    case 407:
      return "proxy credentials required";
    case 410:
      return "gone";
    case 426:
      return "upgrade required";
    default:
      break;
  }
  if (status >= 300 && status < 400) return "a redirect, which is not followed";
  if (status >= 200 && status < 300) return "no WebSocket at this address";
  return {};
}

}  // namespace

std::string_view to_string(Response response) {
  switch (response) {
    case Response::retry:
      return "retry";
    case Response::retry_later:
      return "retry_later";
    case Response::refresh_credentials:
      return "refresh_credentials";
    case Response::park:
      return "park";
  }
  HOLDFAST_ASSERT(false, "every response has a name");
  return {};
}

Response judge(const ConnectionEnd& end) {
  switch (end.kind) {
    case ConnectionEnd::Kind::failed:
      return Response::retry;
    case ConnectionEnd::Kind::refused:
      return judge_status(end.http_status);
    case ConnectionEnd::Kind::closed:
      return judge_close(end.code);
  }
  HOLDFAST_ASSERT(false, "every kind of end is judged");
  return Response::retry;
}

std::string explain(const ConnectionEnd& end) {
  if (end.kind == ConnectionEnd::Kind::failed) return "The connection failed.";
  const bool refused = end.kind == ConnectionEnd::Kind::refused;
  std::string sentence = refused ? "The server answered the upgrade with HTTP " + std::to_string(end.http_status)
                                 : "The connection was closed with code " + std::to_string(end.code);
  const std::string_view what = refused ? meaning(end.http_status) : meaning(end.code);
  if (!what.empty()) sentence.append(" (").append(what).append(")");
  return sentence + ".";
}

void Reconnect::opened(Instant now) {
  opened_at_ = now;
  backoff_.opened(now);
}

Reconnect::Plan Reconnect::ended(const ConnectionEnd& end, Instant now, Random& random) {
  if (opened_at_ && now - *opened_at_ >= stable_) credential_refusals_ = 0;
  opened_at_.reset();

  const Response response = judge(end);
  std::optional<Duration> told = end.retry_after;
  if (response == Response::retry_later) told = told.value_or(later_at_least);
  Plan plan;
  plan.at = now + backoff_.ended(now, told, random);
  if (response == Response::refresh_credentials) {
    plan.refresh_credentials = true;
    ++credential_refusals_;
  }
  if (response == Response::park || credential_refusals_ >= credential_tries) {
    plan.parked = true;
    plan.refresh_credentials = true;  // whatever it is tried again with, it should not be what was refused
    plan.at = now + random.between(parked_at_least, parked_at_most);
    plan.reason = explain(end);
    credential_refusals_ = 0;
  }
  return plan;
}

void Reconnect::row_changed() {
  backoff_.reset();
  opened_at_.reset();
  credential_refusals_ = 0;
}

}  // namespace holdfast
