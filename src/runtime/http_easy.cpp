#include "runtime/http_easy.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <string_view>
#include <utility>

namespace holdfast::runtime {
namespace {

/// From here on libcurl (from 1 MiB) would ask for leave first.
constexpr std::size_t expect_bytes = 512 << 10;

long in_ms(Duration time) {
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}
long in_s(Duration time) {
  return static_cast<long>(std::chrono::ceil<std::chrono::seconds>(time).count());
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t first = std::min(text.find_first_not_of(blank), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(blank) + 1);
}

/// Whether it is an address of this machine or its network, for which no proxy is asked.
bool is_near(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::string_view host = url.substr(scheme + 3);
  for (const std::string_view near : {"127.", "169.254.", "[::1]", "[fd00:ec2::"}) {
    if (host.starts_with(near)) return true;
  }
  return host.substr(0, host.find_first_of(":/?#")) == "localhost";
}

}  // namespace

std::string http_origin(const std::string& url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) return "(no URL)";
  const std::size_t begin = scheme + 3;
  const std::size_t end = std::min(url.find_first_of("/?#\\", begin), url.size());
  const std::size_t user = url.substr(0, end).rfind('@');
  return url.substr(0, begin) + (user == std::string::npos || user < begin ? url.substr(begin, end - begin)
                                                                           : url.substr(user + 1, end - user - 1));
}

HttpEasy::HttpEasy(const HttpLimits& limits, HttpSockets& sockets)
    : limits_(limits), sockets_(sockets), handle_(curl().easy_init()) {
  if (!handle_) throw std::bad_alloc();
  set_base();
}

void HttpEasy::set_base() {
  CURL* const easy = handle_.get();
  sockets_.attach(easy);
  curl().easy_setopt(easy, CURLOPT_PRIVATE, this);
  curl().easy_setopt(easy, CURLOPT_ERRORBUFFER, words_);
  curl().easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  // A resolver that hangs is left behind when its request ends. Else ending it would wait for it: the loop would
  // stand still for as long as the name server says nothing (S7).
  curl().easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl().easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl().easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl().easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, in_ms(limits_.connect_max));
  curl().easy_setopt(easy, CURLOPT_MAXAGE_CONN, in_s(limits_.idle_max));
  curl().easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, in_s(limits_.connection_age_max));
  curl().easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl().easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl().easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!limits_.ca_file.empty()) {
    curl().easy_setopt(easy, CURLOPT_CAINFO, limits_.ca_file.c_str());
    curl().easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  curl().easy_setopt(easy, CURLOPT_USERAGENT, limits_.user_agent.c_str());
  curl().easy_setopt(easy, CURLOPT_HEADERFUNCTION, &on_header);
  curl().easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl().easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_body);
  curl().easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl().easy_setopt(easy, CURLOPT_PREREQFUNCTION, &on_ready_to_send);
  curl().easy_setopt(easy, CURLOPT_PREREQDATA, this);
}

void HttpEasy::begin(HttpTransport::RequestId id_, HttpRequest request) {
  id = id_;
  request_ = std::move(request);
  answer_ = {};
  header_bytes_ = 0;
  given_ = repeated_ = too_large_ = headers_too_large_ = headers_whole_ = false;
  words_[0] = '\0';
  curl().easy_setopt(handle_.get(), CURLOPT_NOPROXY, is_near(request_.url) ? "*" : nullptr);
  curl().easy_setopt(handle_.get(), CURLOPT_URL, request_.url.c_str());
  set_method();
  for (const HttpHeader& header : request_.headers) add_header(header.name + ": " + header.value);
  // No waiting for leave to send a large body: the answer says what the server thinks of it.
  if (request_.body.size() >= expect_bytes) add_header("Expect:");
  curl().easy_setopt(handle_.get(), CURLOPT_HTTPHEADER, headers_.get());
}

void HttpEasy::set_method() {
  CURL* const easy = handle_.get();
  const bool plain_get = request_.method == "GET" && request_.body.empty();
  curl().easy_setopt(easy, CURLOPT_CUSTOMREQUEST, nullptr);
  if (plain_get) {
    curl().easy_setopt(easy, CURLOPT_POSTFIELDS, nullptr);
    curl().easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    return;
  }
  curl().easy_setopt(easy, CURLOPT_POST, 1L);
  curl().easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  curl().easy_setopt(easy, CURLOPT_POSTFIELDS, request_.body.c_str());  // not copied: ours until end()
  if (request_.method != "POST") curl().easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  const bool typed = std::any_of(request_.headers.begin(), request_.headers.end(), [](const HttpHeader& header) {
    return header.name == "Content-Type" || header.name == "content-type";
  });
  // Else libcurl says that it is a form.
  if (!typed) add_header("Content-Type:");
}

void HttpEasy::add_header(const std::string& line) {
  curl_slist* const longer = curl().slist_append(headers_.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  (void)headers_.release();
  headers_.reset(longer);
}

void HttpEasy::clear() {
  id = 0;
  origin.clear();
  curl().easy_setopt(handle_.get(), CURLOPT_HTTPHEADER, nullptr);
  curl().easy_setopt(handle_.get(), CURLOPT_POSTFIELDS, nullptr);
  headers_.reset();
  request_ = {};
  answer_ = {};
}

std::size_t HttpEasy::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  auto& easy = *static_cast<HttpEasy*>(self);
  const std::string_view line(data, size * count);
  easy.header_bytes_ += line.size();
  if (easy.header_bytes_ > easy.limits_.answer_header_bytes_max) {
    easy.headers_too_large_ = true;
    return 0;
  }
  const std::size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) {
    easy.answer_.headers.clear();  // what came before belongs to a 1xx, or to a proxy
    easy.headers_whole_ = false;
  } else if (trimmed(line).empty()) {
    easy.headers_whole_ = true;
  } else if (colon != std::string_view::npos) {
    easy.answer_.headers.push_back(
        {std::string(trimmed(line.substr(0, colon))), std::string(trimmed(line.substr(colon + 1)))});
  }
  return line.size();
}

std::size_t HttpEasy::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& easy = *static_cast<HttpEasy*>(self);
  const std::size_t bytes = size * count;
  if (bytes > easy.request_.answer_bytes_max - easy.answer_.body.size()) {
    easy.too_large_ = true;
    return 0;
  }
  easy.answer_.body.append(data, bytes);
  return bytes;
}

// Called when there is a connection and nothing was written to it yet. libcurl repeats a request in silence when a
// kept connection ends before the first byte of an answer; but by then the server may have carried it out, and a
// repeat's answer would be taken for the first one's (S5). So there is a second time only where nothing was written.
int HttpEasy::on_ready_to_send(void* self, char* /*remote*/, char* /*local*/, int /*remote_port*/,
                               int /*local_port*/) {
  auto& easy = *static_cast<HttpEasy*>(self);
  if (easy.given_ && easy.bytes_given() > 0) {
    easy.repeated_ = true;
    return CURL_PREREQFUNC_ABORT;
  }
  easy.given_ = true;
  return CURL_PREREQFUNC_OK;
}

std::size_t HttpEasy::bytes_given() const {
  long head = 0;
  curl_off_t body = 0;
  curl().easy_getinfo(handle_.get(), CURLINFO_REQUEST_SIZE, &head);
  curl().easy_getinfo(handle_.get(), CURLINFO_SIZE_UPLOAD_T, &body);
  return static_cast<std::size_t>(head) + static_cast<std::size_t>(body);
}

HttpStage HttpEasy::stage() const {
  return given_ ? HttpStage::sent : HttpStage::not_sent;
}

HttpReply HttpEasy::end(CURLcode code) {
  // libcurl takes a connection that ends among the headers for an answer without a body.
  if (code == CURLE_OK && !headers_whole_) code = CURLE_PARTIAL_FILE;
  if (code != CURLE_OK) return tl::unexpected(failure(code));
  long status = 0;
  curl().easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
  answer_.status = static_cast<int>(status);
  return std::move(answer_);
}

HttpFailure HttpEasy::failure(CURLcode code) const {
  const std::string why = words_[0] != '\0' ? words_ : curl().easy_strerror(code);
  const auto say = [&](HttpStage stage, const std::string& what) { return HttpFailure{stage, origin + ": " + what}; };
  if (repeated_) return say(HttpStage::sent, "the connection ended before there was an answer");
  if (too_large_) {
    return say(stage(), "the answer is longer than " + std::to_string(request_.answer_bytes_max) + " bytes");
  }
  if (headers_too_large_) {
    return say(stage(),
               "the answer's headers are longer than " + std::to_string(limits_.answer_header_bytes_max) + " bytes");
  }
  // These end a request that no connection was found for, and a write that failed before its first byte.
  const bool before = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
                      code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR || code == CURLE_SEND_ERROR;
  const HttpStage where = before && bytes_given() == 0 ? HttpStage::not_sent : stage();
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      if (!given_) return say(where, "no connection within " + std::to_string(in_ms(limits_.connect_max)) + " ms");
      return say(where, why);
    case CURLE_GOT_NOTHING:
      return say(where, "the connection ended before there was an answer");
    case CURLE_PARTIAL_FILE:
      return say(where, "the connection ended in the middle of the answer");
    case CURLE_UNSUPPORTED_PROTOCOL:
      return say(where, given_ ? "the answer is not HTTP" : "only http:// and https:// are spoken");
    case CURLE_WEIRD_SERVER_REPLY:
      return say(where, "the answer is not HTTP");
    case CURLE_PEER_FAILED_VERIFICATION:
      return say(where, "its certificate is not trusted: " + why);
    case CURLE_URL_MALFORMAT:
      return say(where, "not a URL");
    default:
      return say(where, why);
  }
}

}  // namespace holdfast::runtime
