// URLs of rows: what parses is written in one way only, reads back as itself, and puts nothing on the request line
// or into the Host header that would end them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/check.hpp"
#include "ws/url.hpp"

namespace {

bool one_word(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) <= ' '; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using holdfast::fuzz::check;
  const std::string_view text = holdfast::fuzz::as_text(data, size);
  const auto url = holdfast::ws::parse_url(text);
  if (!url) {
    check(url.error().code == holdfast::Code::usage && !url.error().detail.empty());
    return 0;
  }
  check(text.size() <= 8192);
  check(!url->host.empty() && url->port != 0);
  check(url->target.starts_with('/') && one_word(url->target) && one_word(url->authority()));
  check(holdfast::ws::parse_url(url->to_string()) == url);

  // A resume parameter with any value stays one parameter.
  const holdfast::ws::Url resumed = url->with_query("since", text);
  check(one_word(resumed.target) && resumed.target.starts_with('/'));
  check(resumed.host == url->host && resumed.port == url->port && resumed.secure == url->secure);
  check(resumed.target.find("since=") != std::string::npos);
  return 0;
}
