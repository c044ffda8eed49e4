#pragma once

#include <functional>
#include <string>
#include <vector>

#include "polyhead/core/exec.h"
#include "polyhead/tensor/arena.h"

/// What `polyhead bench ops` measures.
namespace polyhead::tools {

/// Arenas and an Exec of one thread, in training.
struct Workspace {
  Arena activations, scratch;
  Exec exec{activations, scratch, RngKey{1}, true};
};

/// One measurement.
struct OpCase {
  std::string name;
  double flops = 0;  ///< of matrix products in a call
  double bytes = 0;  ///< read and written in a call; 0 where flops say more
  /// Makes the operands in the workspace, and what is timed.
  std::function<std::function<void()>(Workspace&)> prepare;
};

/// gemm and each op that training spends its time in, forward and backward, at the shapes of small Transformers.
std::vector<OpCase> op_cases();

}  // namespace polyhead::tools
