#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "polyhead/heads/diagnostics.h"
#include "polyhead/train/config.h"

/// What heads do, as `polyhead heads` reports it.
namespace polyhead::tools {

/// {"entropy": ..., "relative_entropy": ..., ...} of one head.
nlohmann::ordered_json head_json(const heads::HeadDiagnostics& head);
/// [{"kind": ..., "layer": ..., "head": ..., "warning": ..., ...}, ...]
nlohmann::ordered_json warnings_json(const std::vector<heads::Warning>& warnings);
/// [{"kind": ..., "layer": ..., "heads": 2, "jensen_shannon": [[0, ...], ...], ...}, ...]
nlohmann::ordered_json similarity_json(const heads::Diagnostics& diagnostics);
/// {"encoder": [{"layer": 0, "self": ..., "relative_entropy": ...}, ...], "decoder": [...]}
nlohmann::ordered_json rollout_json(const heads::Diagnostics& diagnostics);

/// A row a head, then the means over pairs of heads of each attention, and the warnings.
std::string diagnostics_table(const heads::Diagnostics& diagnostics);

/// What train.jsonl says of the heads during training: {"heads": [{"kind": ..., "layer": ..., "head": ..., "entropy": ...},
/// ...], "warnings": [...]}, over the first 200 pairs of the validation split, of the training split where there is none.
/// Null where the configuration asks for none.
std::function<std::string(const nn::Transformer&, const text::TextPipeline&)> training_diagnostics(
    const train::Config& config, int threads);

}  // namespace polyhead::tools
