#include "worker/resume_template.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/hexadecimal.hpp"

namespace holdfast::worker {
namespace {

std::string json_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      escaped += '\\';
      escaped += c;
    } else if (byte < 0x20) {
      escaped += "\\u00";
      append_hexadecimal(std::string_view(&c, 1), escaped);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

Result<ResumeTemplate> ResumeTemplate::parse(std::string_view text) {
  ResumeTemplate result;
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) result.pieces_.push_back({Kind::text, literal});
    literal.clear();
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      literal += c;
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == c) {
      literal += c;
      ++at;
      continue;
    }
    const std::size_t close = c == '{' ? text.find('}', at) : std::string_view::npos;
    if (close == std::string_view::npos) {
      return fail(Code::usage,
                  std::string("a lone '") + c + "' in the resume message: write it twice if it is meant literally");
    }
    const std::string_view name = text.substr(at + 1, close - at - 1);
    end_literal();
    if (name == "last_seq") {
      result.pieces_.push_back({Kind::last_seq, {}});
    } else if (name == "next_seq") {
      result.pieces_.push_back({Kind::next_seq, {}});
    } else if (name == "id") {
      result.pieces_.push_back({Kind::id, {}});
    } else {
      return fail(
          Code::usage,
          "unknown placeholder {" + std::string(name.substr(0, 40)) +
              "} in the resume message: there are {last_seq}, {next_seq} and {id}; a literal brace is doubled");
    }
    at = close;
  }
  end_literal();
  return result;
}

std::string ResumeTemplate::render(std::int64_t last_seq, std::string_view id) const {
  std::string message;
  for (const Piece& piece : pieces_) {
    switch (piece.kind) {
      case Kind::text:
        message += piece.text;
        break;
      case Kind::last_seq:
        message += std::to_string(last_seq);
        break;
      case Kind::next_seq:
        message += std::to_string(last_seq == 0 || last_seq == INT64_MAX ? last_seq : last_seq + 1);
        break;
      case Kind::id:
        message += json_escaped(id);
        break;
    }
  }
  return message;
}

}  // namespace holdfast::worker
