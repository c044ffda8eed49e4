#include "polyhead/heads/importance.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "models.h"
#include "polyhead/heads/masking.h"

namespace polyhead::heads {
namespace {

using decode::message_of;

/// −log p of each pair with one head's gate at ξ.
std::vector<double> losses(const nn::Transformer& model, std::span<const decode::TokenPair> pairs,
                           const Head& head, double gate) {
  std::vector<double> result;
  for (const decode::Score& score :
       decode::score(model, pairs, 1, {}, [&](const nn::AttentionCall&call, const decode::QueryRows&) {
         if (call.site != head.site) return nn::AttentionInputs{};
         const Tensor gates = call.tape.exec().activations.tensor({1, call.heads}, DType::f64);
         for (double& g : gates.span<double>()) g = 1;
         gates.as<double>()[head.head] = gate;
         return nn::AttentionInputs{.gates = call.tape.leaf(gates)};
       }))
    result.push_back(-score.log_probability);
  return result;
}

TEST(Importance, IsTheMeanAbsoluteGradientOfEachSentencesLossByFiniteDifferences) {
  const nn::Transformer model = decode::toy_model(15, DType::f64);
  const RandomPairs pairs(4, 15, 6);
  const std::vector<Head> heads = all_heads(model.config());
  const std::vector<double> gradient = importance(model, pairs.ids, 2);
  ASSERT_EQ(gradient.size(), heads.size());
  constexpr double step = 1e-5;
  double of_batch = 0;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const std::vector<double> above = losses(model, pairs.ids, heads[h], 1 + step),
                              below = losses(model, pairs.ids, heads[h], 1 - step);
    double sum = 0, signed_sum = 0;
    for (std::size_t i = 0; i < above.size(); ++i) {
      sum += std::abs(above[i] - below[i]) / (2 * step);
      signed_sum += (above[i] - below[i]) / (2 * step);
    }
    EXPECT_NEAR(gradient[h], sum / 4, 1e-6 * std::max(1.0, sum)) << "head " << h;
    of_batch += std::abs(signed_sum) / 4;
  }
  // The gradient of the batch's mean, whose sentences cancel, is another number.
  EXPECT_GT(std::accumulate(gradient.begin(), gradient.end(), 0.) - of_batch, 1e-3);
}

TEST(Importance, DoesNotDependOnThreads) {
  const nn::Transformer model = decode::toy_model(15);
  const RandomPairs pairs(300, 15, 12);
  EXPECT_EQ(importance(model, pairs.ids, 1), importance(model, pairs.ids, 3));
  EXPECT_EQ(message_of<DataError>([&] { importance(model, {}, 1); }),
            "importance of heads: no sentence pairs");
}

TEST(HeadFigures, AreThoseOfTheirDefinitions) {
  nn::Transformer model = decode::toy_model(15, DType::f64);
  make_uniform(model);
  const RandomPairs pairs(5, 15, 6);
  const TokenKnowledge tokens{pairs.ids, std::vector<bool>(15), std::vector<bool>(15),
                              std::vector<std::int64_t>(15)};
  const HeadFigures figures = head_figures(model, tokens, 2);
  ASSERT_EQ(figures.heads.size(), 12u);
  const HeadOutputs outputs(model, pairs.ids, 1);
  double encoder = 0, decoder = 0, source_rows = 0, target_rows = 0, norm = 0;
  const Tensor weight =
      model.parameters().value(model.parameters().at("encoder/layers/0/self_attention/output/weight"));
  for (std::size_t s = 0; s < 5; ++s) {
    const std::size_t n = pairs.sources[s].size(), m = pairs.targets[s].size();
    encoder += 1;  // n rows of 1/n
    for (std::size_t i = 0; i < m; ++i) decoder += 1 / static_cast<double>(i + 1);
    source_rows += static_cast<double>(n);
    target_rows += static_cast<double>(m);
    for (std::size_t i = 0; i < n; ++i) {
      const auto y = outputs.row({nn::AttentionKind::encoder, 0}, static_cast<std::int64_t>(s),
                                 static_cast<std::int64_t>(i));
      double square = 0;
      for (std::int64_t o = 0; o < 16; ++o) {
        double sum = 0;
        for (std::int64_t c = 8; c < 16; ++c)
          sum += weight.as<double>()[o * 16 + c] * double{y[static_cast<std::size_t>(c)]};
        square += sum * sum;
      }
      norm += std::sqrt(square);
    }
  }
  EXPECT_NEAR(figures.confidence[0], encoder / source_rows, 1e-9);
  EXPECT_NEAR(figures.confidence[4], decoder / target_rows, 1e-9);
  EXPECT_NEAR(figures.output_norm[1], norm / source_rows, 1e-5);
  const auto whole = decode::score(model, pairs.ids, 1);
  for (const std::size_t h : {0u, 5u, 11u}) {
    const std::vector<double> without = losses(model, pairs.ids, figures.heads[h], 0);
    EXPECT_NEAR(figures.leave_one_out[h],
                std::accumulate(without.begin(), without.end(), 0.) / target_rows - loss(whole), 1e-9);
    const std::size_t sibling = h % 2 == 0 ? h + 1 : h - 1;
    EXPECT_NEAR(figures.importance_normalized[h],
                figures.importance[h] / std::hypot(figures.importance[h], figures.importance[sibling]),
                1e-12);
  }
}

}  // namespace
}  // namespace polyhead::heads
