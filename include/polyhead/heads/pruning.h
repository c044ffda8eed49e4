#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "polyhead/heads/attention_maps.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/config.h"

namespace polyhead::heads {

/// A checkpoint without these heads: their rows of W^Q, W^K and W^V and their columns of W^O are gone, and `model.heads`
/// says how many each layer has left. Computes what the model does with them masked with zero. Weights are the moving
/// average where there is one, with learned gates of heads folded into W^O; neither gates nor the average nor the
/// optimizer's moments are kept. `path` names the checkpoint in messages. Throws FileError when the checkpoint does not fit
/// its configuration.
train::Checkpoint prune(const train::Checkpoint& checkpoint, const std::string& path,
                        std::span<const Head> pruned);

/// The heads whose learned gates are 0. Throws Error when the checkpoint has no gates.
std::vector<Head> closed_heads(const train::Checkpoint& checkpoint, const std::string& path);

/// The order in which heads are removed one by one, the one of the lowest figure first; of equals the first.
/// `figures` are those of `heads`.
std::vector<Head> ascending(std::span<const Head> heads, std::span<const double> figures);

/// A random order: a function of the seed and the number of the draw.
std::vector<Head> random_order(std::span<const Head> heads, std::uint64_t seed, int draw);

/// The greedy order: the next head to remove is the one whose removal, besides those before it, leaves the lowest
/// `loss`; of equals the first.
std::vector<Head> greedy_order(std::span<const Head> heads,
                               const std::function<double(const std::vector<Head>&)>& loss);

}  // namespace polyhead::heads
