#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "polyhead/data/corpus.h"
#include "polyhead/train/checkpoint.h"
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
  /// The newest steps at which a checkpoint was due, ascending, at most training.keep_last. Checkpoints for other
  /// reasons (a signal, a limit, a best score) are not among them, so that an interruption does not change which
  /// stay. Absent where the file that the state came from does not tell.
  std::optional<std::vector<std::int64_t>> scheduled = std::vector<std::int64_t>{};
  std::int64_t validations_without_best = 0;
  Schedule::State schedule;
  std::string corpus;  ///< digest of the encoded training data

  /// Notes the score of this step among the best `keep`; whether it is better than all before.
  bool record(double score, bool lower_is_better, int keep);
  /// Whether the checkpoint of `step` is among the best.
  bool is_best(std::int64_t step) const;
  /// Notes a checkpoint at this step, and whether it was due; of those that were, the newest `keep` stay scheduled.
  void checkpoint(bool due, int keep);
  bool is_scheduled(std::int64_t step) const;
  /// Whether the checkpoint of `step` stays: it is scheduled, among the best, or the newest of all.
  bool keeps(std::int64_t of) const { return of == step || is_best(of) || is_scheduled(of); }

  std::string dump() const;
  /// Throws FileError, without the name of a file, unless it is what a run may write.
  static TrainerState parse(const std::string& json);
};

/// Throws FileError naming the checkpoint.
TrainerState state_of(const Checkpoint& checkpoint);

/// A digest of all ids of a corpus. The end tokens within them tell where its sentences end.
std::string digest(const data::ParallelCorpus& corpus);

}  // namespace polyhead::train
