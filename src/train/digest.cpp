#include "train/digest.h"

#include <openssl/evp.h>

#include <array>

#include "polyhead/core/error.h"

namespace polyhead::train {
namespace {

void require_done(int result) {
  require<FileError>(result == 1, "OpenSSL could not compute a SHA-256 digest");
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  require_done(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  require_done(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()));
}

std::string Sha256::text() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  require_done(EVP_DigestFinal_ex(context_->evp, digest.data(), &size));
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    for (const int nibble : {digest[i] >> 4, digest[i] & 15}) text += "0123456789abcdef"[nibble];
  }
  return text;
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.text();
}

}  // namespace polyhead::train
