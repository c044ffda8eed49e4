#include "memory.h"

#include "polyhead/core/memory.h"

namespace polyhead::train {

void refuse_memory(std::optional<std::int64_t> bytes) {
  constexpr std::int64_t mebibyte = 1 << 20;
  const std::string needed =
      bytes ? concat("about ", *bytes / mebibyte, " MiB of memory, but ") : "more memory than the ";
  throw Error(concat("training needs ", needed, memory_limit() / mebibyte,
                     " MiB that can be had; expected a smaller training.batch_tokens, vocabulary or model, "
                     "a smaller decoding.batch_tokens where a validation translates, more training.lanes, "
                     "fewer --threads, or a higher limit (ulimit -v) where there is one"));
}

void require_memory(std::int64_t bytes) {
  if (bytes > memory_limit()) refuse_memory(bytes);
}

}  // namespace polyhead::train
