#include "runtime/secure_random.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <cstring>
#include <stdexcept>

namespace holdfast::runtime {

SecureRandom::~SecureRandom() {
  OPENSSL_cleanse(block_.data(), block_.size());
}

void SecureRandom::fill(std::uint8_t* to, std::size_t size) {
  if (block_.size() - used_ < size) {
    // The generator of a thread is made on first use: without memory it fails.
    if (RAND_bytes(block_.data(), static_cast<int>(block_.size())) != 1) {
      throw std::runtime_error("OpenSSL gives no random numbers (out of memory?)");
    }
    used_ = 0;
  }
  std::memcpy(to, block_.data() + used_, size);
  OPENSSL_cleanse(block_.data() + used_, size);
  used_ += size;
}

}  // namespace holdfast::runtime
