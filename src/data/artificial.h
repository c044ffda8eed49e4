#pragma once

#include "polyhead/core/rng.h"
#include "polyhead/data/pair.h"

/// Tasks with one known mechanism each. A pair's alignment says where cross-attention has to look, its trees where
/// self-attention has to.
namespace polyhead::data {

/// Of tokens that look at none.
Dependencies no_heads(std::size_t tokens);

Pair draw_copy(RandomStream& random);
Pair draw_reverse(RandomStream& random);
Pair draw_sort(RandomStream& random);
Pair draw_recall(RandomStream& random);
Pair draw_dyck(RandomStream& random);
Pair draw_nearest(RandomStream& random);

}  // namespace polyhead::data
