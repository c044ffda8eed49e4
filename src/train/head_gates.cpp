#include "polyhead/train/head_gates.h"

#include <algorithm>

#include "polyhead/ops/hard_concrete.h"

namespace polyhead::train {
namespace {

/// The attentions that have heads.
std::vector<nn::AttentionSite> sites_of(const nn::ModelConfig& config) {
  std::vector<nn::AttentionSite> sites;
  for (const nn::AttentionKind kind : nn::attention_kinds)
    for (int layer = 0; layer < config.layers(kind); ++layer)
      if (config.heads.at({kind, layer}) > 0) sites.push_back({kind, layer});
  return sites;
}

}  // namespace

std::string path(const nn::AttentionSite& site) {
  return concat(site.kind == nn::AttentionKind::encoder ? "encoder" : "decoder", "/layers/", site.layer,
                site.kind == nn::AttentionKind::cross ? "/cross_attention" : "/self_attention");
}

std::string gates_path(const nn::AttentionSite& site) { return path(site) + "/gates"; }

void HeadGates::declare(nn::Transformer& model) {
  for (const nn::AttentionSite& site : sites_of(model.config()))
    nn::Scope(model.parameters(), path(site))
        .declare("gates", {model.config().heads.at(site)}, nn::Init::zeros());
}

HeadGates::HeadGates(const nn::Transformer& model) : store_(model.parameters()) {
  const auto& all = store_.parameters();
  for (const nn::AttentionSite& site : sites_of(model.config())) {
    const auto log_alpha = std::find_if(
        all.begin(), all.end(), [path = gates_path(site)](const nn::Parameter& p) { return p.path == path; });
    if (log_alpha != all.end())
      gates_.push_back({site, &*log_alpha, &store_.at(path(site) + "/output/weight")});
  }
}

void HeadGates::fill(double log_alpha) const {
  for (const Gates& gates : gates_)
    for (float& x : store_.value(*gates.log_alpha).span<float>()) x = static_cast<float>(log_alpha);
}

nn::AttentionInputs HeadGates::inputs(const nn::Context& context, const nn::AttentionCall& call) const {
  const auto gates =
      std::find_if(gates_.begin(), gates_.end(), [&](const Gates& g) { return g.site == call.site; });
  if (gates == gates_.end()) return {};
  const ops::HardConcrete op{.site = hash(gates->log_alpha->path)};
  return {.gates = context.tape.apply(op, context(*gates->log_alpha))};
}

double HeadGates::expected_open() const {
  double sum = 0;
  for (const Gates& gates : gates_)
    for (const float x : store_.value(*gates.log_alpha).span<float>())
      sum += ops::HardConcrete::open_probability(double{x});
  return sum;
}

void HeadGates::add_penalty(double weight, const Tensor& gradients) const {
  for (const Gates& gates : gates_) {
    const auto values = store_.value(*gates.log_alpha).span<float>();
    const auto slopes = nn::ParameterStore::view(*gates.log_alpha, gradients).span<float>();
    for (std::size_t h = 0; h < values.size(); ++h) {
      const double p = ops::HardConcrete::open_probability(double{values[h]});
      slopes[h] += static_cast<float>(weight * p * (1 - p));
    }
  }
}

void HeadGates::fold() const {
  for (const Gates& gates : gates_) {
    const auto values = store_.value(*gates.log_alpha).span<float>();
    const Tensor output = store_.value(*gates.output);
    const auto columns = static_cast<std::size_t>(output.cols()), dim = columns / values.size();
    const auto weights = output.span<float>();
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] *= static_cast<float>(ops::HardConcrete::value(double{values[i % columns / dim]}));
  }
}

}  // namespace polyhead::train
