#pragma once

#include <cstddef>
#include <vector>

#include "polyhead/tensor/tensor.h"

namespace polyhead {

/// Memory of the operating system, zeroed, asking for huge pages: a fresh small page can cost more than the
/// arithmetic on it. Address space is reserved at once and made usable as needed, so nothing ever moves.
class Pages {
 public:
  /// Reserves `capacity` bytes, rounded up to huge pages. Throws MemoryError when they cannot be had.
  explicit Pages(std::size_t capacity);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  /// Makes the first `bytes`, of the capacity, usable. Throws MemoryError when they cannot be had.
  void commit(std::size_t bytes);
  std::byte* data() const { return data_; }
  std::size_t committed() const { return committed_; }
  std::size_t capacity() const { return capacity_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0, committed_ = 0;
};

/// Bump allocator, 64-byte aligned. Taking memory seldom touches the heap; giving it back is a rewind to a mark. It is one
/// block that can grow to all of the memory that there is; where address space is limited, of which others need some too,
/// it begins small, and blocks follow as they are needed.
class Arena {
 public:
  using Mark = std::size_t;
  Arena();
  /// An uninitialised tensor, valid until the arena is rewound to a mark taken before.
  Tensor tensor(Shape shape, DType dtype);
  /// As tensor(), all zero.
  Tensor zeros(Shape shape, DType dtype);
  /// Room for `count` objects of a trivially destructible type, uninitialised.
  template <class T>
  T* allocate(std::size_t count = 1) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);
    return static_cast<T*>(take(count * sizeof(T)));
  }
  Mark mark() const { return used_; }
  void rewind(Mark mark) {
    used_ = mark;
    while (blocks_[block_].begin > mark) --block_;
    ++rewinds_;
  }
  /// How often memory was given back: what was taken before is still there while this stays the same.
  std::size_t rewinds() const { return rewinds_; }
  /// The most bytes ever in use.
  std::size_t peak() const { return peak_; }
  /// The bytes of address space that it has.
  std::size_t capacity() const { return blocks_.back().end(); }

 private:
  /// Bytes of the arena from `begin` on.
  struct Block {
    std::size_t begin;
    Pages pages;
    std::size_t end() const { return begin + pages.capacity(); }
  };
  void* take(std::size_t bytes);
  std::vector<Block> blocks_;
  std::size_t block_ = 0;  ///< in use last
  std::size_t used_ = 0, peak_ = 0, rewinds_ = 0;
};

/// Gives back at the end of a block what was taken from an arena in it.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.rewind(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

/// One tensor with pages of its own, zeroed: parameters, gradients, moments.
class Slab {
 public:
  Slab(Shape shape, DType dtype);
  const Tensor& tensor() const { return tensor_; }

 private:
  Pages pages_;
  Tensor tensor_;
};

}  // namespace polyhead
