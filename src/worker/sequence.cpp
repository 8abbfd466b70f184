#include "worker/sequence.hpp"

#include <simdjson.h>

#include <charconv>
#include <cstring>
#include <system_error>

namespace holdfast::worker {
namespace {

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

}  // namespace

SeqPointer::SeqPointer(std::string_view text) {
  while (!text.empty()) {
    text.remove_prefix(1);  // the slash
    const std::string_view raw = text.substr(0, text.find('/'));
    text.remove_prefix(raw.size());
    Step step;
    for (std::size_t at = 0; at < raw.size(); ++at) {
      if (raw[at] == '~' && at + 1 < raw.size()) {
        ++at;
        step.name += raw[at] == '1' ? '/' : '~';
      } else {
        step.name += raw[at];
      }
    }
    const bool leading_zero = raw.size() > 1 && raw.front() == '0';
    if (!leading_zero) step.index = whole_number<std::size_t>(raw);
    steps_.push_back(std::move(step));
  }
}

class SeqReader::Parser {
 public:
  [[nodiscard]] std::optional<std::int64_t> read(std::string_view message, const SeqPointer& pointer) {
    // simdjson reads past the end of what it is given, so the message is copied to where it may.
    if (message.size() + simdjson::SIMDJSON_PADDING > room_.size()) room_.resize(2 * message.size() + 4096);
    std::memcpy(room_.data(), message.data(), message.size());
    simdjson::ondemand::document document;
    if (parser_.iterate(room_.data(), message.size(), room_.size()).get(document) != simdjson::SUCCESS) return {};
    simdjson::ondemand::value value;
    const auto& steps = pointer.steps();
    if (steps.empty() || !enter(document, steps.front(), value)) return {};
    for (std::size_t i = 1; i < steps.size(); ++i) {
      simdjson::ondemand::value inner;
      if (!enter(value, steps[i], inner)) return {};
      value = inner;
    }
    return number(value);
  }

 private:
  template <class Container>
  static bool enter(Container& container, const SeqPointer::Step& step, simdjson::ondemand::value& into) {
    simdjson::ondemand::json_type type{};
    if (container.type().get(type) != simdjson::SUCCESS) return false;
    if (type == simdjson::ondemand::json_type::object)
      return container.find_field_unordered(step.name).get(into) == simdjson::SUCCESS;
    if (type != simdjson::ondemand::json_type::array || !step.index) return false;
    simdjson::ondemand::array array;
    if (container.get_array().get(array) != simdjson::SUCCESS) return false;
    return array.at(*step.index).get(into) == simdjson::SUCCESS;
  }

  static std::optional<std::int64_t> number(simdjson::ondemand::value& value) {
    simdjson::ondemand::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) return {};
    std::optional<std::int64_t> found;
    if (type == simdjson::ondemand::json_type::number) {
      std::int64_t integer = 0;
      if (value.get_int64().get(integer) == simdjson::SUCCESS) found = integer;
    } else if (type == simdjson::ondemand::json_type::string) {
      std::string_view digits;
      if (value.get_string().get(digits) == simdjson::SUCCESS) found = whole_number<std::int64_t>(digits);
    }
    return found && *found >= 0 ? found : std::nullopt;
  }

  simdjson::ondemand::parser parser_;
  std::string room_;
};

SeqReader::SeqReader() : parser_(std::make_unique<Parser>()) {}
SeqReader::~SeqReader() = default;

std::optional<std::int64_t> SeqReader::read(std::string_view message, const SeqPointer& pointer) {
  return parser_->read(message, pointer);
}

Sequence::Seen Sequence::see(std::int64_t seq) {
  Seen seen;
  seen.went_back = last_on_connection_ && seq < *last_on_connection_;
  last_on_connection_ = seq;
  if (last_ && seq <= *last_) {
    seen.repeat = true;
    return seen;
  }
  if (last_ && seq > *last_ + 1) {
    seen.hole_from = *last_ + 1;
    seen.hole_to = seq - 1;
  }
  last_ = seq;
  return seen;
}

}  // namespace holdfast::worker
