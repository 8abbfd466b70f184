#include "cli/once_record.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/coord/once.hpp"
#include "store/utf8.hpp"

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
  if (store::is_utf8(record.output)) {
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
  ::close(descriptor);
  return CapturedOutput(std::move(path));
}

CapturedOutput::~CapturedOutput() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

CapturedOutput::CapturedOutput(CapturedOutput&& other) noexcept : path_(std::exchange(other.path_, {})) {}

Result<std::string> CapturedOutput::content() const {
  std::error_code error;
  const auto size = std::filesystem::file_size(path_, error);
  if (error) return fail(Code::internal, "cannot read " + path_ + ": " + error.message());
  if (size > OnceResult::most) {
    return fail(Code::exhausted, "the command printed " + std::to_string(size) + " bytes, and at most " +
                                     std::to_string(OnceResult::most) +
                                     " can be recorded: have it print where its output is");
  }
  std::ifstream file(path_, std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

}  // namespace holdfast::cli
