#pragma once

#include <string>
#include <vector>

#include "polyhead/experiment/config.h"
#include "polyhead/train/config.h"

namespace polyhead::experiment {

/// What a control changes of a point's configuration. Throws Error when it cannot: without file and line.
std::vector<config::Setting> control_settings(Control control, const ExperimentConfig& experiment,
                                              const train::Config& point, const train::Config& baseline,
                                              const config::Place& place);

/// Parameters of a model for vocabularies of a given size.
std::int64_t parameters_of(const nn::ModelConfig& model, std::int64_t source_vocabulary,
                           std::int64_t target_vocabulary);

}  // namespace polyhead::experiment
