#pragma once
#include <memory>
#include <string>

#include "runtime/curl.hpp"
#include "runtime/http.hpp"
#include "runtime/http_client.hpp"
#include "runtime/http_sockets.hpp"

namespace holdfast::runtime {

/// The part of a URL that says with whom to talk, "https://host:port": for people, and the name of a queue. Without
/// user and password.
[[nodiscard]] std::string http_origin(const std::string& url);

/// An easy handle of libcurl and the one request at a time that it carries. A part of HttpClient. Handles are used
/// again: what does not change from request to request is set once.
class HttpEasy {
 public:
  HttpEasy(const HttpLimits& limits, HttpSockets& sockets);
  ~HttpEasy() = default;
  HttpEasy(const HttpEasy&) = delete;
  HttpEasy& operator=(const HttpEasy&) = delete;

  [[nodiscard]] CURL* handle() const { return handle_.get(); }

  /// Makes it ready for the request, which is signed where it has to be.
  void begin(HttpTransport::RequestId id, HttpRequest request);
  /// What it came to; called once, when libcurl is done with it.
  [[nodiscard]] HttpReply end(CURLcode code);
  /// Where it stands now: for a request that is given up in the middle.
  [[nodiscard]] HttpStage stage() const;
  [[nodiscard]] bool was_given() const { return given_; }
  /// Lets go of the request, its secrets included.
  void clear();

  HttpTransport::RequestId id = 0;
  std::string origin;

 private:
  struct FreeEasy {
    void operator()(CURL* easy) const { curl().easy_cleanup(easy); }
  };
  struct FreeList {
    void operator()(curl_slist* list) const { curl().slist_free_all(list); }
  };

  void set_base();
  void set_method();
  void add_header(const std::string& line);
  [[nodiscard]] HttpFailure failure(CURLcode code) const;
  [[nodiscard]] std::size_t bytes_given() const;

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static int on_ready_to_send(void* self, char* remote, char* local, int remote_port, int local_port);

  const HttpLimits& limits_;
  HttpSockets& sockets_;
  std::unique_ptr<CURL, FreeEasy> handle_;
  std::unique_ptr<curl_slist, FreeList> headers_;
  HttpRequest request_;
  HttpAnswer answer_;
  std::size_t header_bytes_ = 0;
  bool given_ = false;     // libcurl has, or had, a connection that the request may go out on
  bool repeated_ = false;  // libcurl was about to send it a second time
  bool too_large_ = false;
  bool headers_too_large_ = false;
  bool headers_whole_ = false;
  char words_[CURL_ERROR_SIZE] = {};
};

}  // namespace holdfast::runtime
