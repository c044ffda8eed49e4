#pragma once

#include "polyhead/metrics/score.h"
#include "polyhead/metrics/sentence_statistics.h"

namespace polyhead::metrics {

///   chrF2 = (1 + β²)·P·R / (β²·P + R), β = 2  (Popović 2015, W15-3049; 2017, W17-4770)
/// P, R: means of the n-gram precisions and recalls over characters (n = 1…6, white space left out)
/// and words (n = 1…`word_order`, punctuation at either end of a word cut off), over those orders that both
/// sides have. Of several references each line takes the one it scores highest against.
/// Equals sacreBLEU 2 without eps smoothing. Details: precision, recall, in percent.
/// Throws Error for a word_order outside 0…6.
Score chrf(const Corpus& corpus, const Options& options);

/// Of each line the n-grams of every order in the hypothesis, in the reference, and in both.
/// Throws Error as chrf().
SentenceStatistics chrf_statistics(const Corpus& corpus, const Options& options);

}  // namespace polyhead::metrics
