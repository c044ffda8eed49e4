#include "polyhead/nn/transformer.h"

#include <cmath>

#include "polyhead/ops/cross_entropy.h"
#include "polyhead/ops/linear.h"
#include "polyhead/ops/softmax.h"

namespace polyhead::nn {

Transformer::Transformer(const ModelConfig& config, std::int64_t source_vocabulary,
                         std::int64_t target_vocabulary)
    : config_(config), store_(std::make_unique<ParameterStore>()) {
  require(config.tie_embeddings != TieEmbeddings::all || source_vocabulary == target_vocabulary,
          "model.tie_embeddings: all, but the vocabularies have ", source_vocabulary, " and ",
          target_vocabulary, " pieces, expected one shared vocabulary (tokenizer.shared: true)");
  const Scope root = store_->root();
  const auto embedding = [&](const Scope& scope, std::int64_t vocabulary) -> const Parameter& {
    return (scope / "embedding")
        .declare("weight", {vocabulary, config.d_model},
                 Init::normal(1 / std::sqrt(static_cast<double>(config.d_model))));
  };
  const bool shared = config.tie_embeddings == TieEmbeddings::all;
  const Parameter& source = embedding(shared ? root : root / "encoder", source_vocabulary);
  const Parameter& target = shared ? source : embedding(root / "decoder", target_vocabulary);
  source_embedding_ = std::make_unique<EmbeddingLayer>(root / "encoder", config, source);
  target_embedding_ = std::make_unique<EmbeddingLayer>(root / "decoder", config, target);
  encoder_ = std::make_unique<Encoder>(root / "encoder", config);
  decoder_ = std::make_unique<Decoder>(root / "decoder", config);
  const Scope output = root / "output";
  output_weight_ =
      config.tie_embeddings != TieEmbeddings::none
          ? &target
          : &output.declare("weight", {target_vocabulary, config.d_model}, Init::xavier_uniform());
  if (config.bias) output_bias_ = &output.declare("bias", {target_vocabulary}, Init::zeros());
}

Var Transformer::encode(const Context& context, const TokenBatch& source) const {
  return (*encoder_)(context, (*source_embedding_)(context, source.ids, source.segments), source.segments);
}

Var Transformer::decode(const Context& context, const TokenBatch& target, Var memory,
                        const Segments& sources) const {
  return (*decoder_)(context, (*target_embedding_)(context, target.ids, target.segments), target.segments,
                     memory, sources);
}

Var Transformer::loss(const Context& context, const TokenBatch& source, const TokenBatch& target_inputs,
                      const Tensor& target_outputs, const LossOptions& options) const {
  const Var features = decode(context, target_inputs, encode(context, source), source.segments);
  const ops::ProjectedCrossEntropy op{.targets = target_outputs,
                                      .label_smoothing = options.label_smoothing,
                                      .gradients = context.tape.recording(),
                                      .token_loss = options.token_loss,
                                      .predictions = options.predictions};
  return context.tape.apply(op, features, context(*output_weight_), context(output_bias_));
}

Var Transformer::log_probabilities(const Context& context, Var features) const {
  const Var logits =
      context.tape.apply(ops::Linear{}, features, context(*output_weight_), context(output_bias_));
  return context.tape.apply(ops::Softmax{.log = true}, logits);
}

ops::MostLikely::Words Transformer::most_likely(const Context& context, Var features,
                                                const ops::MostLikely& op) const {
  return op(context.tape.exec(), features.value(), context(*output_weight_).value(),
            context(output_bias_).value());
}

DecoderState Transformer::start(const Context& context, Var memory, std::int64_t slots,
                                std::int64_t capacity) const {
  return decoder_->start(context, memory, slots, capacity);
}

Var Transformer::step(const Context& context, std::span<const std::int32_t> ids,
                      std::span<const std::int32_t> slots, const Segments& sources,
                      DecoderState& state) const {
  Arena& arena = context.tape.exec().activations;
  const auto n = static_cast<std::int64_t>(ids.size());
  const Tensor id_rows = arena.tensor({n}, DType::i32), positions = arena.tensor({n}, DType::i32);
  auto* rows = arena.allocate<Segment>(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    id_rows.as<std::int32_t>()[i] = ids[i];
    positions.as<std::int32_t>()[i] = state.length(slots[i]);
    rows[i] = {static_cast<std::int32_t>(i), 1};
  }
  const Segments one_row_each{{rows, ids.size()}, 0};
  const Var x = target_embedding_->at(context, id_rows, positions, one_row_each);
  return decoder_->step(context, x, one_row_each, slots, sources, state);
}

}  // namespace polyhead::nn
