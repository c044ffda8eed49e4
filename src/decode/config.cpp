#include "polyhead/decode/config.h"

#include <algorithm>
#include <cmath>

#include "polyhead/config/problems.h"

namespace polyhead::decode {

double DecodingConfig::penalty(std::int64_t length) const {
  const auto n = static_cast<double>(length);
  switch (length_penalty_kind) {
    case LengthPenalty::wu:
      return std::pow((5 + n) / 6, length_penalty);
    case LengthPenalty::length:
      return std::pow(n, length_penalty);
    case LengthPenalty::none:
      break;
  }
  return 1;
}

std::int32_t DecodingConfig::target_limit(std::int64_t source_length, int max_length) const {
  const double limit = max_length_ratio * static_cast<double>(source_length) + max_length_extra;
  return static_cast<std::int32_t>(std::clamp(limit, 1.0, static_cast<double>(max_length)));
}

void DecodingConfig::validate(config::Problems& problems) const {
  if (method == Method::beam && nbest > beam_size)
    problems.add("nbest", nbest, " is more than beam_size ", beam_size, " can give");
}

}  // namespace polyhead::decode
