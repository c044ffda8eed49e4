#include "polyhead/core/rng.h"

namespace polyhead {

PhiloxBlock philox(PhiloxBlock c, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

RngKey RngKey::fold(std::uint64_t data) const {
  // The last counter word keeps derived keys apart from the draws made with this key, whose last word is
  // small.
  const PhiloxBlock block = philox(
      {static_cast<std::uint32_t>(data), static_cast<std::uint32_t>(data >> 32), 0, 0xFFFFFFFF}, value);
  return {block[0] | std::uint64_t{block[1]} << 32};
}

RngKey RngKey::fold(std::string_view path) const { return fold(hash(path)); }

std::uint32_t RandomStream::next() {
  if (left_ == 0) {
    block_ = philox({static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_ >> 32), 0, 0},
                    key_.value);
    ++counter_;
    left_ = 4;
  }
  return block_[static_cast<std::size_t>(4 - left_--)];
}

double RandomStream::uniform() {
  const std::uint64_t high = next() >> 5;  // 27 bits
  const std::uint64_t low = next() >> 6;   // 26 bits
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

std::uint64_t RandomStream::below(std::uint64_t n) {
  // Draws beyond the last whole multiple of n would favour small results.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % n;
  std::uint64_t draw = 0;
  do {
    draw = std::uint64_t{next()} << 32;
    draw |= next();
  } while (draw >= limit);
  return draw % n;
}

}  // namespace polyhead
