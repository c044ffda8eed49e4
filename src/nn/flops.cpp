#include "polyhead/nn/flops.h"

namespace polyhead::nn {

Flops forward_flops(const ModelConfig& c, std::int64_t target_vocabulary, std::int64_t source_tokens,
                    std::int64_t target_tokens) {
  const double s = static_cast<double>(source_tokens), t = static_cast<double>(target_tokens);
  const double d = c.d_model, feed_forward = 4 * d * c.d_ff;
  const auto widths = [&](AttentionKind kind) {  // of all its layers
    return c.total_heads(kind) * static_cast<double>(c.key_width() + c.value_width());
  };
  const double encoder = widths(AttentionKind::encoder), decoder = widths(AttentionKind::decoder),
               cross = widths(AttentionKind::cross);
  // Of self-attention: query, key, value and output; of cross-attention query and output, key and value of the memory.
  const double linear = s * (4 * d * encoder + c.encoder_layers * feed_forward) +
                        t * (4 * d * decoder + 2 * d * cross + c.decoder_layers * feed_forward) +
                        s * 2 * d * cross + t * 2 * d * static_cast<double>(target_vocabulary);
  return {.linear = linear, .attention = 2 * (encoder * s * s + decoder * t * (t + 1) / 2 + cross * t * s)};
}

Flops training_flops(const ModelConfig& config, std::int64_t target_vocabulary, std::int64_t source_tokens,
                     std::int64_t target_tokens) {
  return 3 * forward_flops(config, target_vocabulary, source_tokens, target_tokens);
}

}  // namespace polyhead::nn
