#include "train/digest.h"

#include <openssl/evp.h>

#include <array>

#include "polyhead/core/error.h"

namespace polyhead::train {

std::string sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  require<FileError>(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1,
                     "OpenSSL could not compute a SHA-256 digest");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    for (const int nibble : {digest[i] >> 4, digest[i] & 15}) text += "0123456789abcdef"[nibble];
  }
  return text;
}

}  // namespace polyhead::train
