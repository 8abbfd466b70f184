#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace holdfast::sink {

/// A growing stretch of bytes that is written into by pointer: no zeroing, no check per byte.
class Bytes {
 public:
  /// At least `count` bytes may be written at the returned place; commit() says where they end.
  [[nodiscard]] char* reserve(std::size_t count) {
    if (capacity_ - size_ < count) grow(count);
    return data_.get() + size_;
  }
  void commit(const char* end) { size_ = static_cast<std::size_t>(end - data_.get()); }
  void clear() { size_ = 0; }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::string_view view() const { return {data_.get(), size_}; }

 private:
  void grow(std::size_t count) {
    const std::size_t wanted = std::max({size_ + count, capacity_ * 2, std::size_t{4096}});
    auto larger = std::make_unique_for_overwrite<char[]>(wanted);
    if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    capacity_ = wanted;
  }

  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace holdfast::sink
