#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "holdfast/types.hpp"

namespace holdfast::runtime {

/// Unpredictable bytes from OpenSSL's generator, fetched in blocks: a call for four of them is cheap. Not
/// thread-safe: one per thread. Bytes are wiped once they are handed out.
class SecureRandom {
 public:
  SecureRandom() = default;
  ~SecureRandom();
  SecureRandom(const SecureRandom&) = delete;
  SecureRandom& operator=(const SecureRandom&) = delete;

  /// Throws std::runtime_error where OpenSSL has none to give.
  template <std::size_t size>
  [[nodiscard]] std::array<std::uint8_t, size> take() {
    static_assert(size <= block_bytes);
    std::array<std::uint8_t, size> bytes{};
    fill(bytes.data(), size);
    return bytes;
  }
  /// An id that no other process comes to, whatever its loops are seeded with.
  [[nodiscard]] Attempt attempt() { return std::bit_cast<Attempt>(take<sizeof(Attempt)>()); }

 private:
  static constexpr std::size_t block_bytes = 1024;
  void fill(std::uint8_t* to, std::size_t size);

  std::array<std::uint8_t, block_bytes> block_{};
  std::size_t used_ = block_bytes;
};

}  // namespace holdfast::runtime
