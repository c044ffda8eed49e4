#pragma once

#include "polyhead/metrics/score.h"
#include "polyhead/metrics/sentence_statistics.h"

namespace polyhead::metrics {

///   TER = edits / mean reference length  (Snover et al. 2006, AMTA)
/// Edits of a line: insertions, deletions, substitutions and shifts of a run of words, found greedily as
/// tercom does, against the reference that needs the fewest. Words are split at white space and, unless
/// `case_sensitive`, lower-cased. A corpus of empty references scores 100, or 0 without any hypothesis.
/// Equals sacreBLEU 2, its beam and limits included. Details: edits, reference_length.
Score ter(const Corpus& corpus, const Options& options);
/// Of each line its edits and its mean reference length.
SentenceStatistics ter_statistics(const Corpus& corpus, const Options& options);

}  // namespace polyhead::metrics
