#pragma once
#include <curl/curl.h>

namespace holdfast::runtime {

/// The functions of libcurl. They are looked for when the first HTTP client is made, not linked: libcurl stands on
/// some thirty libraries, and to load them all took a third of the time of a `holdfast run` that speaks no HTTP.
struct Curl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_global_cleanup) global_cleanup;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_setopt) multi_setopt;
  decltype(&::curl_multi_assign) multi_assign;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_multi_socket_action) multi_socket_action;
  decltype(&::curl_share_init) share_init;
  decltype(&::curl_share_cleanup) share_cleanup;
  decltype(&::curl_share_setopt) share_setopt;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

/// Loaded once, and for as long as the process lives. Throws std::runtime_error, with what to do, where there is
/// none. Any thread.
[[nodiscard]] const Curl& curl();

}  // namespace holdfast::runtime
