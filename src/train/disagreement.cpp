#include "polyhead/train/disagreement.h"

#include <algorithm>

#include "polyhead/ops/attention_overlap.h"
#include "polyhead/ops/elementwise.h"
#include "polyhead/ops/head_cosine.h"

namespace polyhead::train {
namespace {

bool compares(const DisagreementConfig& config, nn::AttentionKind kind) {
  return std::find(config.attention.begin(), config.attention.end(), kind) != config.attention.end();
}

}  // namespace

Disagreement::Disagreement(const DisagreementConfig& config, const nn::ModelConfig& model) : config_(config) {
  for (const nn::AttentionKind kind : nn::attention_kinds)
    for (int layer = 0; layer < model.layers(kind) && compares(config, kind); ++layer)
      if (model.heads.at({kind, layer}) > 0) ++attentions_;
}

bool Disagreement::empty() const {
  const auto weights = config_.weights();
  return attentions_ == 0 || std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; });
}

void Disagreement::begin(const data::TokenCount& update) {
  source_row_ = static_cast<double>(update.target) / static_cast<double>(update.source);
}

void ShardDisagreement::add(std::size_t aspect, Tape& tape, Var similarity, double row) {
  const Var share = tape.apply(ops::Scale{row / update_.attentions_}, similarity);
  Var& sum = similarity_[aspect];
  sum = sum ? tape.apply(ops::Add{}, sum, share) : share;
}

void ShardDisagreement::add(const nn::AttentionFlow& flow) {
  const DisagreementConfig& config = update_.config_;
  const nn::AttentionCall& call = flow.call;
  const nn::AttentionKind kind = call.site.kind;
  if (!compares(config, kind)) return;
  Tape& tape = call.tape;
  const double query_row = kind == nn::AttentionKind::encoder ? update_.source_row_ : 1,
               key_row = kind == nn::AttentionKind::decoder ? 1 : update_.source_row_;
  const ops::HeadCosine cosine{call.heads};
  if (config.subspace > 0) add(0, tape, tape.apply(cosine, flow.value), key_row);
  if (config.position > 0) {
    const ops::AttentionOverlap overlap{call.heads, call.queries, call.keys, call.causal};
    add(1, tape, tape.apply(overlap, flow.query, flow.key), query_row);
  }
  if (config.output > 0) add(2, tape, tape.apply(cosine, flow.output), query_row);
}

Var ShardDisagreement::add_to(Tape& tape, Var loss) const {
  const auto weights = update_.config_.weights();
  for (std::size_t aspect = 0; aspect < weights.size(); ++aspect)
    if (similarity_[aspect])
      loss = tape.apply(ops::Add{}, loss, tape.apply(ops::Scale{weights[aspect]}, similarity_[aspect]));
  return loss;
}

std::array<double, 3> ShardDisagreement::sums() const {
  std::array<double, 3> sums{};
  for (std::size_t aspect = 0; aspect < sums.size(); ++aspect)
    if (similarity_[aspect])
      dispatch(similarity_[aspect].dtype(), [&]<class T>() {
        sums[aspect] = -static_cast<double>(*similarity_[aspect].value().template as<T>());
      });
  return sums;
}

}  // namespace polyhead::train
