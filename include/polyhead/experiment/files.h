#pragma once

#include "polyhead/experiment/results.h"

namespace polyhead::experiment {

/// Reads the files that are taken by what is left to be done of a plan: text to train, validate and evaluate on, models of
/// tokenizers, initial checkpoints. Throws one Error that tells all that cannot be used, a line for each.
void check_files(const Plan& plan, const Results& results, const EvaluationPlan& evaluation);

/// What is in the files that the cells of a plan name (data_files()): the FNV-1a hash of their bytes. Of one that cannot be
/// read, what `known` has of it.
Digests digests_of(const Plan& plan, const Digests& known);

}  // namespace polyhead::experiment
