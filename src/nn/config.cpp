#include "polyhead/nn/config.h"

namespace polyhead::nn {

int ModelConfig::total_heads(AttentionKind kind) const {
  int sum = 0;
  for (int layer = 0; layer < layers(kind); ++layer) sum += heads.at({kind, layer});
  return sum;
}

void ModelConfig::validate_heads(config::Problems& problems) const {
  if (!heads.lists()) {
    if (!head_dim && d_model % int{heads} != 0)
      problems.add("heads", heads, " does not divide d_model ", d_model,
                   ", expected a divisor, or head_dim to be given");
    return;
  }
  if (!head_dim)
    problems.add("head_dim",
                 "null, expected a number of features where layers have numbers of heads of their own");
  for (const AttentionKind kind : attention_kinds) {
    const std::vector<int>& counts = (*heads.lists())[static_cast<std::size_t>(kind)];
    if (static_cast<int>(counts.size()) != layers(kind))
      problems.add("heads", name(kind), " has ", counts.size(), " numbers, expected one for each of ",
                   layers(kind), " layers");
    for (const int count : counts)
      if (count < 0 || count > 1024)
        problems.add("heads", name(kind), " has a layer of ", count, " heads, expected between 0 and 1024");
  }
}

}  // namespace polyhead::nn
