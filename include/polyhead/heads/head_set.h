#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "polyhead/heads/attention_maps.h"

namespace polyhead::heads {

/// "encoder.0.3": kind of attention, layer and head, counted from 0.
std::string name(const Head& head);
/// "encoder.0.3,cross.1.0"
std::string names(std::span<const Head> heads);

/// Heads as names() writes them; spaces around them do not matter. Throws Error (usage) that says what is wrong: a name
/// that is none, a head that the model does not have, one given twice, or none at all.
std::vector<Head> parse_heads(std::string_view text, const nn::ModelConfig& model);

/// Sets of heads from a YAML file:
///     sets:
///       - encoder.0.3, cross.1.0
///       - decoder.1.2
/// Throws Error (usage) as config::load() and parse_heads().
std::vector<std::vector<Head>> load_head_sets(const std::string& path, const nn::ModelConfig& model);

/// The other heads of a head's layer and kind.
std::vector<Head> others(const Head& head, const nn::ModelConfig& model);

}  // namespace polyhead::heads
