#include "runtime/secure_random.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <cstring>

#include "holdfast/assert.hpp"

namespace holdfast::runtime {

SecureRandom::~SecureRandom() {
  OPENSSL_cleanse(block_.data(), block_.size());
}

void SecureRandom::fill(std::uint8_t* to, std::size_t size) {
  if (block_.size() - used_ < size) {
    const int done = RAND_bytes(block_.data(), static_cast<int>(block_.size()));
    HOLDFAST_ASSERT(done == 1, "OpenSSL's generator is seeded by the operating system");
    used_ = 0;
  }
  std::memcpy(to, block_.data() + used_, size);
  OPENSSL_cleanse(block_.data() + used_, size);
  used_ += size;
}

}  // namespace holdfast::runtime
