#include "polyhead/tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
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

/// An arena can grow to all of the memory that there is. Where address space is limited, it takes an eighth of what is left:
/// there are other arenas.
std::size_t arena_capacity() {
  static const std::int64_t most = memory_limit();
  const std::int64_t limit = address_space_limit();
  if (limit == std::numeric_limits<std::int64_t>::max()) return static_cast<std::size_t>(most);
  return static_cast<std::size_t>(
      std::min(most, std::max<std::int64_t>(limit - address_space_bytes(), 0) / 8));
}

}  // namespace

Pages::Pages(std::size_t capacity) {
  // Reserved, not committed: costs address space only. Where that is limited, ask for less.
  for (capacity_ = round_up(std::max(capacity, huge_page), huge_page); capacity_ >= huge_page;
       capacity_ /= 2) {
    void* p = mmap(nullptr, capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    data_ = static_cast<std::byte*>(p);
    madvise(data_, capacity_, MADV_HUGEPAGE);  // a wish: nothing is lost where it is refused
    return;
  }
  throw MemoryError(concat("cannot reserve ", capacity, " bytes of address space: ", std::strerror(errno)));
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
  require<MemoryError>(bytes <= capacity_, "out of memory: ", bytes, " bytes needed, ", capacity_,
                       " bytes of address space reserved");
  // In large steps, so that growing is rare.
  const std::size_t target = std::min(capacity_, round_up(bytes, 16 * huge_page));
  require<MemoryError>(mprotect(data_ + committed_, target - committed_, PROT_READ | PROT_WRITE) == 0,
                       "out of memory: ", target, " bytes needed: ", std::strerror(errno));
  committed_ = target;
}

Arena::Arena() : pages_(arena_capacity()) {}

void* Arena::take(std::size_t bytes) {
  const std::size_t begin = used_;
  used_ += round_up(bytes, alignment);
  if (used_ > peak_) {
    pages_.commit(used_);
    peak_ = used_;
  }
  return pages_.data() + begin;
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
