#include <algorithm>
#include <cmath>
#include <string>

#include "polyhead/train/model_file.h"
#include "targets.h"
#include "train/checkpoint_content.h"
#include "train/trainer_state.h"

namespace polyhead::fuzz {
namespace {

bool finite(std::span<const train::NamedArray> arrays) {
  return std::all_of(arrays.begin(), arrays.end(), [](const train::NamedArray& array) {
    return std::all_of(array.values.begin(), array.values.end(), [](float x) { return std::isfinite(x); });
  });
}

}  // namespace

void checkpoint(std::string_view input) {
  std::string file = train::checkpoint_header(std::as_bytes(std::span(input)));
  file += input;
  try {
    train::verify_checkpoint(std::as_bytes(std::span(file)));
    const train::Checkpoint checkpoint = train::parse_checkpoint(std::as_bytes(std::span(file)));
    expect(finite(checkpoint.parameters) && finite(checkpoint.ema), "a value is not finite");
    expect(checkpoint.step >= 0 && checkpoint.epoch >= 0, "a count is negative");
    // The tables of positions are what a small file can make large.
    const nn::ModelConfig& model = train::config_of(checkpoint, "checkpoint").model;
    if (model.max_length * model.d_model > 1 << 16) return;
    const train::LoadedModel loaded = train::model_of(checkpoint);
    expect(!loaded.model->parameters().parameters().empty(), "a model without parameters");
    train::TrainerState::parse(checkpoint.state);
  } catch (const FileError&) {
  }
}

}  // namespace polyhead::fuzz
