#include "polyhead/tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "polyhead/core/memory.h"

namespace polyhead {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t alignment = 64;

std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// Of an arena's first block.
std::size_t first_capacity() {
  if (address_space_limit() != std::numeric_limits<std::int64_t>::max()) return huge_page;
  static const std::int64_t most = memory_limit();
  return static_cast<std::size_t>(most);
}

}  // namespace

Pages::Pages(std::size_t capacity) : capacity_(round_up(std::max(capacity, huge_page), huge_page)) {
  // Reserved, not committed: costs address space only.
  void* p = mmap(nullptr, capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require<MemoryError>(p != MAP_FAILED, capacity_, " bytes");
  data_ = static_cast<std::byte*>(p);
  madvise(data_, capacity_, MADV_HUGEPAGE);  // a wish: nothing is lost where it is refused
}

Pages::~Pages() {
  if (data_) munmap(data_, capacity_);
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(other.capacity_), committed_(other.committed_) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  std::swap(committed_, other.committed_);
  return *this;
}

void Pages::commit(std::size_t bytes) {
  if (bytes <= committed_) return;
  require<MemoryError>(bytes <= capacity_, bytes, " bytes");
  // In large steps, so that growing is rare.
  const std::size_t target = std::min(capacity_, round_up(bytes, 16 * huge_page));
  require<MemoryError>(mprotect(data_ + committed_, target - committed_, PROT_READ | PROT_WRITE) == 0, target,
                       " bytes");
  committed_ = target;
}

Arena::Arena() { blocks_.push_back({0, Pages(first_capacity())}); }

void* Arena::take(std::size_t bytes) {
  const std::size_t size = round_up(bytes, alignment);
  while (used_ + size > blocks_[block_].end()) {
    const std::size_t end = capacity();
    if (++block_ == blocks_.size()) blocks_.push_back({end, Pages(std::max(size, end / 2))});
    used_ = blocks_[block_].begin;
  }
  Block& block = blocks_[block_];
  const std::size_t begin = used_ - block.begin;
  block.pages.commit(begin + size);
  used_ += size;
  peak_ = std::max(peak_, used_);
  return block.pages.data() + begin;
}

Tensor Arena::tensor(Shape shape, DType dtype) {
  Tensor t{nullptr, shape, dtype};
  t.data = take(t.bytes());
  return t;
}

Tensor Arena::zeros(Shape shape, DType dtype) {
  const Tensor t = tensor(shape, dtype);
  fill_zero(t);
  return t;
}

Slab::Slab(Shape shape, DType dtype)
    : pages_(static_cast<std::size_t>(shape.size()) * size_of(dtype)), tensor_{pages_.data(), shape, dtype} {
  pages_.commit(tensor_.bytes());
}

}  // namespace polyhead
