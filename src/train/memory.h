#pragma once

#include <cstdint>
#include <optional>

namespace polyhead::train {

/// Throws an Error that says what to change: training needs `bytes`, or more than there is.
[[noreturn]] void refuse_memory(std::optional<std::int64_t> bytes);

/// Does so unless `bytes`, all that training will take, can be had (see memory_limit()).
void require_memory(std::int64_t bytes);

}  // namespace polyhead::train
