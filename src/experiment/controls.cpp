#include "controls.h"

#include <cmath>

#include "polyhead/core/error.h"
#include "polyhead/nn/transformer.h"

namespace polyhead::experiment {
namespace {

nn::ModelConfig partition_of(nn::ModelConfig model) {
  model.head_dim.reset();
  model.value_dim.reset();
  return model;
}

/// Without embeddings and output, which no control changes: with the same vocabulary everywhere the difference is exact.
std::int64_t comparable_parameters(const nn::ModelConfig& model) { return parameters_of(model, 4, 4); }

/// The d_ff with which `model` has as many parameters as `like`, as nearly as an integer can; the number is linear in it.
int matching_d_ff(Control control, nn::ModelConfig model, const nn::ModelConfig& like) {
  model.d_ff = 1;
  const std::int64_t least = comparable_parameters(model), wanted = comparable_parameters(like);
  model.d_ff = 2;
  const auto slope = static_cast<double>(comparable_parameters(model) - least);
  const double d_ff = 1 + std::round(static_cast<double>(wanted - least) / slope);
  require(d_ff >= 1, name(control), ": ", model.heads, " heads of ", model.key_width(), " features in ",
          model.encoder_layers, " + ", model.decoder_layers, " layers have ", least - wanted,
          " parameters more than are to be matched even with d_ff 1, expected a larger d_ff",
          control == Control::fixed_head_dim ? " or a smaller head_dim" : "");
  return static_cast<int>(d_ff);
}

class Changes {
 public:
  explicit Changes(config::Place place) : place_(std::move(place)) {}
  void set(const char* key, std::int64_t value) {
    settings_.push_back(
        {key, {.kind = config::Node::Kind::scalar, .place = place_, .text = std::to_string(value)}});
  }
  void unset(const char* key) { settings_.push_back({key, {.place = place_}}); }
  void set_head_dim(int width) {
    set("model.head_dim", width);
    set("model.value_dim", width);
  }
  std::vector<config::Setting> take() { return std::move(settings_); }

 private:
  config::Place place_;
  std::vector<config::Setting> settings_;
};

}  // namespace

std::int64_t parameters_of(const nn::ModelConfig& model, std::int64_t source_vocabulary,
                           std::int64_t target_vocabulary) {
  return nn::Transformer(model, source_vocabulary, target_vocabulary).parameters().count();
}

std::vector<config::Setting> control_settings(Control control, const ExperimentConfig& experiment,
                                              const train::Config& point, const train::Config& baseline,
                                              const config::Place& place) {
  Changes changes(place);
  const nn::ModelConfig like = partition_of(point.model), of_baseline = partition_of(baseline.model);
  nn::ModelConfig model = like;
  switch (control) {
    case Control::none:
    case Control::learning_rate_search:
      break;
    case Control::partition:
      changes.unset("model.head_dim");
      changes.unset("model.value_dim");
      break;
    case Control::fixed_head_dim: {
      const int width = experiment.head_dim.value_or(of_baseline.key_width());
      model.head_dim = model.value_dim = width;
      changes.set_head_dim(width);
      changes.set("model.d_ff", matching_d_ff(control, model, like));
      break;
    }
    case Control::head_dim:
      changes.set("model.heads", int{of_baseline.heads});
      changes.set_head_dim(like.key_width());
      break;
    case Control::depth_for_heads: {
      model.heads = 1;
      model.head_dim = model.value_dim = like.key_width();
      model.encoder_layers *= int{like.heads};
      model.decoder_layers *= int{like.heads};
      changes.set("model.heads", 1);
      changes.set_head_dim(like.key_width());
      changes.set("model.encoder_layers", model.encoder_layers);
      changes.set("model.decoder_layers", model.decoder_layers);
      changes.set("model.d_ff", matching_d_ff(control, model, like));
      break;
    }
  }
  return changes.take();
}

}  // namespace polyhead::experiment
