#include "polyhead/nn/flops.h"

namespace polyhead::nn {

Flops forward_flops(const ModelConfig& c, std::int64_t target_vocabulary, std::int64_t source_tokens,
                    std::int64_t target_tokens) {
  const double s = static_cast<double>(source_tokens), t = static_cast<double>(target_tokens);
  const double d = c.d_model, widths = c.heads * static_cast<double>(c.key_width() + c.value_width());
  const double half_attention = 2 * d * widths;  // query and output, or key and value
  const double feed_forward = 4 * d * c.d_ff;
  const double encoder = s * (2 * half_attention + feed_forward);
  const double decoder = t * (3 * half_attention + feed_forward) + s * half_attention;
  const double output = t * 2 * d * static_cast<double>(target_vocabulary);
  return {
      .linear = c.encoder_layers * encoder + c.decoder_layers * decoder + output,
      .attention = 2 * widths * (c.encoder_layers * s * s + c.decoder_layers * (t * (t + 1) / 2 + t * s))};
}

Flops training_flops(const ModelConfig& config, std::int64_t target_vocabulary, std::int64_t source_tokens,
                     std::int64_t target_tokens) {
  return 3 * forward_flops(config, target_vocabulary, source_tokens, target_tokens);
}

}  // namespace polyhead::nn
