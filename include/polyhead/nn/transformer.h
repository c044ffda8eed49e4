#pragma once

#include <memory>
#include <vector>

#include "polyhead/nn/config.h"
#include "polyhead/nn/decoder.h"
#include "polyhead/nn/embedding.h"
#include "polyhead/nn/encoder.h"
#include "polyhead/ops/most_likely.h"

namespace polyhead::nn {

/// Packed ids and the sentences they belong to.
struct TokenBatch {
  Tensor ids;  ///< [N], i32
  Segments segments;
};

/// What loss() measures besides the loss; tensors may be empty.
struct LossOptions {
  double label_smoothing = 0;
  Tensor token_loss = {};   ///< receives −log p of each target token, [N]
  Tensor predictions = {};  ///< receives the most probable id at each target position, [N], i32
};

/// The encoder-decoder Transformer of Vaswani et al. 2017, arXiv:1706.03762.
/// Parameters are declared at construction, and hold values once the store is allocated and initialised or
/// read.
class Transformer {
 public:
  /// Throws Error when `tie_embeddings: all` meets vocabularies of different sizes.
  Transformer(const ModelConfig& config, std::int64_t source_vocabulary, std::int64_t target_vocabulary);

  const ModelConfig& config() const { return config_; }
  ParameterStore& parameters() { return *store_; }
  const ParameterStore& parameters() const { return *store_; }

  /// Rows of source tokens -> memory [Ns, d_model].
  Var encode(const Context& context, const TokenBatch& source) const;
  /// Rows of target inputs (bos first) with their sentences' memory -> features [Nt, d_model], before the
  /// output layer.
  Var decode(const Context& context, const TokenBatch& target, Var memory, const Segments& sources) const;
  /// Σ over target tokens of the label-smoothed cross-entropy, [1]; outputs are the inputs shifted by one.
  Var loss(const Context& context, const TokenBatch& source, const TokenBatch& target_inputs,
           const Tensor& target_outputs, const LossOptions& options) const;
  /// log p over the vocabulary for each row of features, [N, V].
  Var log_probabilities(const Context& context, Var features) const;
  /// The words of which these are the largest, without all of a row's.
  ops::MostLikely::Words most_likely(const Context& context, Var features, const ops::MostLikely& op) const;

  /// Prepares a decoder's state: room for `slots` hypotheses of up to `capacity` tokens each over this
  /// memory.
  DecoderState start(const Context& context, Var memory, std::int64_t slots, std::int64_t capacity) const;
  /// Features of one more token for each of `slots`: ids[i] extends slots[i], whose sentence's memory is
  /// sources[i].
  Var step(const Context& context, std::span<const std::int32_t> ids, std::span<const std::int32_t> slots,
           const Segments& sources, DecoderState& state) const;

 private:
  ModelConfig config_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<EmbeddingLayer> source_embedding_, target_embedding_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<Decoder> decoder_;
  const Parameter* output_weight_ = nullptr;
  const Parameter* output_bias_ = nullptr;
};

}  // namespace polyhead::nn
