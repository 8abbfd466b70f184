#include "runtime/curl.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace holdfast::runtime {
namespace {

/// The interface that the headers describe has had this name since 2006.
constexpr const char* file = "libcurl.so.4";

class Library {
 public:
  /// Lazy: of all that its libraries might call, some thousand functions are looked for when they are called.
  Library() : handle_(::dlopen(file, RTLD_LAZY | RTLD_LOCAL)) {
    if (handle_ == nullptr) fail();
  }

  template <class Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function == nullptr) fail();
  }

 private:
  [[noreturn]] static void fail() {
    const char* const why = ::dlerror();
    throw std::runtime_error("HTTP needs libcurl, which cannot be loaded: install Debian's libcurl4 (" +
                             std::string(why == nullptr ? file : why) + ")");
  }

  void* const handle_;  // never given back: threads of its resolver may still be in it
};

Curl load() {
  const Library library;
  Curl all{};
  library.find(all.global_init, "curl_global_init");
  library.find(all.global_cleanup, "curl_global_cleanup");
  library.find(all.easy_init, "curl_easy_init");
  library.find(all.easy_cleanup, "curl_easy_cleanup");
  library.find(all.easy_setopt, "curl_easy_setopt");
  library.find(all.easy_getinfo, "curl_easy_getinfo");
  library.find(all.easy_strerror, "curl_easy_strerror");
  library.find(all.multi_init, "curl_multi_init");
  library.find(all.multi_cleanup, "curl_multi_cleanup");
  library.find(all.multi_setopt, "curl_multi_setopt");
  library.find(all.multi_assign, "curl_multi_assign");
  library.find(all.multi_add_handle, "curl_multi_add_handle");
  library.find(all.multi_remove_handle, "curl_multi_remove_handle");
  library.find(all.multi_info_read, "curl_multi_info_read");
  library.find(all.multi_socket_action, "curl_multi_socket_action");
  library.find(all.share_init, "curl_share_init");
  library.find(all.share_cleanup, "curl_share_cleanup");
  library.find(all.share_setopt, "curl_share_setopt");
  library.find(all.slist_append, "curl_slist_append");
  library.find(all.slist_free_all, "curl_slist_free_all");
  return all;
}

}  // namespace

const Curl& curl() {
  static const Curl loaded = load();
  return loaded;
}

}  // namespace holdfast::runtime
