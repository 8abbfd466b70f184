#include "cli/once_record.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/coord/once.hpp"
#include "core/utf8.hpp"

namespace holdfast::cli {

namespace {

std::string to_base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

Result<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0 || text.size() % 4 != 0) return fail(Code::corrupt, "the recorded output is no base64");
  // EVP_DecodeBlock() counts the padding as bytes.
  const auto padding = text.ends_with("==") ? 2U : text.ends_with('=') ? 1U : 0U;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

}  // namespace

std::string to_content(const OnceRecord& record) {
  boost::json::object object{{"exit_code", record.exit_code}};
  if (is_utf8(record.output)) {
    object["stdout"] = record.output;
  } else {
    object["stdout_base64"] = to_base64(record.output);
  }
  return boost::json::serialize(object);
}

Result<OnceRecord> record_from(const std::string& content) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(content, error);
  const auto* object = error ? nullptr : value.if_object();
  const auto* code = object == nullptr ? nullptr : object->if_contains("exit_code");
  if (code == nullptr || code->if_int64() == nullptr || *code->if_int64() < 0 || *code->if_int64() > 255) {
    return fail(Code::corrupt, "the recorded result is none that 'holdfast once' has written");
  }
  OnceRecord record;
  record.exit_code = static_cast<int>(*code->if_int64());
  if (const auto* text = object->if_contains("stdout"); text != nullptr && text->is_string()) {
    record.output = std::string_view(text->get_string());
  } else if (const auto* bytes = object->if_contains("stdout_base64"); bytes != nullptr && bytes->is_string()) {
    auto output = from_base64(bytes->get_string());
    if (!output) return tl::unexpected<Error>(output.error());
    record.output = *std::move(output);
  }
  return record;
}

Result<CapturedOutput> CapturedOutput::open() {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
  if (folder.empty()) folder = "/tmp";
  std::string path = (folder / "holdfast-once-XXXXXX").string();
  const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0)
    return fail(Code::denied, "cannot make a file in " + folder.string() + ": " + std::strerror(errno));
  ::unlink(path.c_str());
  return CapturedOutput(descriptor);
}

CapturedOutput::~CapturedOutput() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

CapturedOutput::CapturedOutput(CapturedOutput&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), dropped_(other.dropped_) {}

void CapturedOutput::bound() {
  constexpr std::uintmax_t far_too_much = 4U << 20;
  struct stat file {};
  if (::fstat(descriptor_, &file) != 0 || static_cast<std::uintmax_t>(file.st_size) <= far_too_much) return;
  if (::ftruncate(descriptor_, 0) == 0) dropped_ += static_cast<std::uintmax_t>(file.st_size);
}

Result<std::string> CapturedOutput::content() const {
  struct stat file {};
  if (::fstat(descriptor_, &file) != 0) {
    return fail(Code::internal, std::string("cannot read what the command printed: ") + std::strerror(errno));
  }
  const auto size = dropped_ + static_cast<std::uintmax_t>(file.st_size);
  if (size > OnceResult::most) {
    return fail(Code::exhausted, std::string("the command printed ") + (dropped_ > 0 ? "at least " : "") +
                                     std::to_string(size) + " bytes, and at most " +
                                     std::to_string(OnceResult::most) +
                                     " can be recorded: have it print where its output is");
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  const auto read = ::pread(descriptor_, text.data(), text.size(), 0);
  if (read < 0 || static_cast<std::size_t>(read) != text.size()) {
    return fail(Code::internal, std::string("cannot read what the command printed: ") + std::strerror(errno));
  }
  return text;
}

}  // namespace holdfast::cli
