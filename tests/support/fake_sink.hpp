#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/sink.hpp"

namespace holdfast::test {

/// A sink that keeps what it is given, acknowledges when it is told to, and is behind when it is told to be.
class FakeSink final : public Sink {
 public:
  struct Kept {
    Record::Kind kind = Record::Kind::text;
    std::string connection;
    Epoch epoch;
    std::int64_t seq = 0;
    std::int64_t gap_to = 0;
    std::string data;
  };
  std::vector<Kept> records;
  std::size_t writes = 0;
  std::size_t flushes = 0;
  bool acknowledges_at_once = false;

  Position write(std::span<const Record> batch) override {
    ++writes;
    for (const Record& record : batch)
      records.push_back({record.kind, std::string(record.connection), record.epoch, record.seq, record.gap_to,
                         std::string(record.data)});
    if (acknowledges_at_once) acknowledged_ = records.size();
    return records.size();
  }
  [[nodiscard]] Position acknowledged() const override { return acknowledged_; }
  [[nodiscard]] bool behind() const override { return behind_; }
  [[nodiscard]] std::optional<Error> failure() const override { return failure_; }
  void on_progress(std::function<void()> listener) override { listener_ = std::move(listener); }
  void flush() override { ++flushes; }
  void close(Duration) override {}

  void acknowledge(Position position) {
    acknowledged_ = position;
    tell();
  }
  void acknowledge_all() { acknowledge(records.size()); }
  void set_behind(bool behind) {
    behind_ = behind;
    tell();
  }
  /// No longer behind, and nobody is told of it.
  void catch_up_unheard() { behind_ = false; }
  void set_failure(std::optional<Error> failure) {
    failure_ = std::move(failure);
    tell();
  }
  /// The numbers of all messages, and gaps as negative first numbers.
  [[nodiscard]] std::vector<std::int64_t> seqs() const {
    std::vector<std::int64_t> seqs;
    for (const Kept& record : records) seqs.push_back(record.kind == Record::Kind::gap ? -record.seq : record.seq);
    return seqs;
  }

 private:
  void tell() const {
    if (listener_) listener_();
  }
  Position acknowledged_ = 0;
  bool behind_ = false;
  std::optional<Error> failure_;
  std::function<void()> listener_;
};

}  // namespace holdfast::test
