#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "polyhead/data/corpus.h"
#include "polyhead/train/schedule.h"

namespace polyhead::train {

/// Where a run stands, besides weights and moments: all that going on exactly takes.
struct TrainerState {
  struct Scored {
    std::int64_t step = 0;
    double score = 0;
  };
  std::int64_t step = 0;     ///< updates made
  std::int64_t epoch = 0;    ///< epochs ended
  std::int64_t batch = 0;    ///< updates made of the epoch under way
  double seconds = 0;        ///< of training
  std::vector<Scored> best;  ///< best first
  std::int64_t validations_without_best = 0;
  Schedule::State schedule;
  std::string corpus;  ///< digest of the encoded training data

  /// Notes the score of this step among the best `keep`; whether it is better than all before.
  bool record(double score, bool lower_is_better, int keep);
  /// Whether the checkpoint of `step` is among the best.
  bool is_best(std::int64_t step) const;

  std::string dump() const;
  /// Throws FileError naming `path`.
  static TrainerState parse(const std::string& json, const std::string& path);
};

/// A digest of all ids of a corpus.
std::string digest(const data::ParallelCorpus& corpus);

}  // namespace polyhead::train
