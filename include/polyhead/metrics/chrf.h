#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polyhead/metrics/score.h"

namespace polyhead::metrics {

///   chrF2 = (1 + β²)·P·R / (β²·P + R), β = 2  (Popović 2015, W15-3049; 2017, W17-4770)
/// P, R: means of the n-gram precisions and recalls over characters (n = 1…6, white space left out)
/// and words (n = 1…`word_order`, punctuation at either end of a word cut off), over those orders that both
/// sides have. Of several references each line takes the one it scores highest against.
/// Equals sacreBLEU 2 without eps smoothing. Details: precision, recall, in percent.
/// Throws Error for a word_order outside 0…6.
Score chrf(const Corpus& corpus, const Options& options);

/// The n-gram counts of each line of a corpus, made once: for chrF of many of its parts, as resampling takes.
class ChrfCounts {
 public:
  /// Throws Error as chrf().
  ChrfCounts(const Corpus& corpus, const Options& options);
  /// chrF, in percent, of the corpus of these lines; one may be there more than once.
  double score(std::span<const std::int32_t> lines) const;

 private:
  std::size_t orders_;
  std::vector<std::int32_t>
      counts_;  ///< line by line: for each order those of hypothesis and reference, and matches
};

}  // namespace polyhead::metrics
