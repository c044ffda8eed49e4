#include "polyhead/nn/embedding.h"

#include <cmath>
#include <vector>

#include "polyhead/ops/dropout.h"
#include "polyhead/ops/embedding.h"

namespace polyhead::nn {

namespace {

/// Bounds what a configuration alone can take before memory is counted: 192 MiB a table, and a second.
const Shape& bounded(const Shape& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  require(shape.size() <= most, "model.max_length: ", shape[0], " times d_model ", shape[1],
          ", expected at most ", most, " with sinusoidal positions");
  return shape;
}

}  // namespace

SinusoidalPositions::SinusoidalPositions(const Shape& shape)
    : f32_(bounded(shape), DType::f32), f64_(shape, DType::f64) {
  const std::int64_t d = shape[1];
  std::vector<double> wavelengths;
  for (std::int64_t feature = 0; feature < d; ++feature)
    wavelengths.push_back(
        std::pow(10000.0, static_cast<double>(feature - feature % 2) / static_cast<double>(d)));
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    const std::int64_t position = i / d, feature = i % d;
    const double angle = static_cast<double>(position) / wavelengths[static_cast<std::size_t>(feature)];
    const double value = feature % 2 == 0 ? std::sin(angle) : std::cos(angle);
    f64_.tensor().as<double>()[i] = value;
    f32_.tensor().as<float>()[i] = static_cast<float>(value);
  }
}

EmbeddingLayer::EmbeddingLayer(const Scope& scope, const ModelConfig& config, const Parameter& weight)
    : weight_(weight),
      max_length_(config.max_length),
      scale_(std::sqrt(static_cast<double>(config.d_model))),
      dropout_(config.dropout),
      site_((scope / "dropout").site()) {
  const Shape shape{config.max_length, config.d_model};
  if (config.positions == Positions::learned)
    learned_ = &(scope / "positions").declare("weight", shape, Init::normal(1 / scale_));
  if (config.positions == Positions::sinusoidal) sinusoidal_.emplace(shape);
}

Var EmbeddingLayer::operator()(const Context& context, const Tensor& ids, const Segments& segments) const {
  const Tensor positions = context.tape.exec().activations.zeros(ids.shape, DType::i32);
  for (const Segment& s : segments.spans)
    for (std::int32_t i = 0; i < s.length; ++i) positions.as<std::int32_t>()[s.begin + i] = i;
  return at(context, ids, positions, segments);
}

Var EmbeddingLayer::at(const Context& context, const Tensor& ids, const Tensor& positions,
                       const Segments& segments) const {
  for (const std::int32_t position : positions.span<std::int32_t>())
    require(position < max_length_, "position ", position, " in a sentence, expected below model.max_length ",
            max_length_);
  Tape& tape = context.tape;
  Var x = tape.apply(ops::Embedding{ids, scale_}, context(weight_));
  if (learned_) x = tape.apply(ops::AddPositions{positions}, x, context(*learned_));
  if (sinusoidal_) x = tape.apply(ops::AddPositions{positions}, x, tape.leaf(sinusoidal_->table(x.dtype())));
  return dropout_ > 0 ? tape.apply(ops::Dropout{dropout_, site_, segments}, x) : x;
}

}  // namespace polyhead::nn
