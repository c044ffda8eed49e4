#pragma once

#include "polyhead/metrics/score.h"

namespace polyhead::metrics {

/// 100 · Σ agreeing positions / Σ max(hypothesis length, reference length), over white-space tokens.
/// Of several references each line takes the one it agrees with best; empty against empty is 100.
/// Details: matches, positions.
Score token_accuracy(const Corpus& corpus, const Options& options);

}  // namespace polyhead::metrics
