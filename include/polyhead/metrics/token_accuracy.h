#pragma once

#include "polyhead/metrics/score.h"
#include "polyhead/metrics/sentence_statistics.h"

namespace polyhead::metrics {

/// 100 · Σ agreeing positions / Σ max(hypothesis length, reference length), over white-space tokens.
/// Of several references each line takes the one it agrees with best; empty against empty is 100.
/// Details: matches, positions.
Score token_accuracy(const Corpus& corpus, const Options& options);
/// Of each line its agreeing positions and its positions.
SentenceStatistics token_accuracy_statistics(const Corpus& corpus, const Options& options);

}  // namespace polyhead::metrics
