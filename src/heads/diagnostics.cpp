#include "polyhead/heads/diagnostics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "polyhead/core/error.h"

namespace polyhead::heads {
namespace {

SiteSimilarity similarity(std::span<const Head> heads, std::size_t first, const WeightStatistics& weights,
                          const OutputStatistics& outputs) {
  std::size_t end = first;
  while (end < heads.size() && heads[end].site == heads[first].site) ++end;
  SiteSimilarity result{heads[first].site, end - first, {}, {}, {}};
  for (std::size_t a = first; a < end; ++a)
    for (std::size_t b = first; b < end; ++b) {
      result.jensen_shannon.push_back(weights.jensen_shannon(a, b));
      result.cka.push_back(outputs.cka(a, b));
      result.cosine.push_back(outputs.cosine(a, b));
    }
  return result;
}

/// What a figure of a head by itself can be a warning of.
struct Rule {
  std::string_view warning, figure;
  double threshold;
  bool above;  ///< whether the head is worse the larger the figure is
  std::string_view advice;
};
constexpr std::string_view exploding = "exploding", redundant = "redundant", dead = "dead";
constexpr Rule collapsed_rule{
    "collapsed", "effective_rank", 1.5, false,
    "its outputs differ in one direction at most: prune it, or train with fewer heads"},
    saturated_rule{
        "saturated", "saturation", 0.95, true,
        "softmax passes hardly a gradient to it: a lower learning rate or a longer warm-up while training "
        "keeps logits smaller"},
    redundant_rule{redundant, "cka", 0.98, true,
                   "one of the two can go: prune it, and see what that changes"},
    dead_rule{dead, "relative_output_norm", 0.01, false,
              "it adds nothing to its attention: prune it, or train with fewer heads"},
    silent_rule{
        dead, "output_norm", 0.01, false,
        "it adds nothing to the sum that normalisation keeps near √d_model: prune it, or train with less "
        "weight decay"},
    logits_rule{exploding, "logit_deviation", 10, true,
                "its logits have grown out of softmax's range: a lower learning rate, a longer warm-up or "
                "training.clip_norm"},
    gradient_rule{
        exploding, "gradient_norm", 10, true,
        "in multiples of the heads' median: a lower learning rate, a longer warm-up or training.clip_norm"};
constexpr std::array rules{&collapsed_rule, &saturated_rule, &redundant_rule, &dead_rule,
                           &silent_rule,    &logits_rule,    &gradient_rule};

bool breaks(const Rule& rule, double value) {
  return rule.above ? value > rule.threshold : value < rule.threshold;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Diagnostics diagnose(const nn::Transformer& model, const text::TextPipeline& pipeline,
                     std::span<const decode::TokenPair> pairs, int threads,
                     const decode::Progress& progress) {
  const std::vector<Head> heads = all_heads(model.config());
  const TokenKnowledge tokens = token_knowledge(pairs, pipeline);
  const WeightStatistics weights =
      AttentionMaps(model, pairs).gather(WeightStatistics(heads, tokens), threads, progress);
  const Outputs outputs = measure_outputs(model, heads, pairs, threads, progress);
  Diagnostics result;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    result.heads.push_back({heads[h], weights.figures(h), outputs.figures[h]});
    if (h == 0 || heads[h].site != heads[h - 1].site)
      result.similarities.push_back(similarity(heads, h, weights, outputs.statistics));
  }
  result.rollouts = weights.rollouts();
  return result;
}

std::vector<Warning> warnings(const Diagnostics& diagnostics) {
  std::vector<Warning> result;
  if (diagnostics.heads.empty()) return result;
  std::vector<double> gradients;
  for (const HeadDiagnostics& d : diagnostics.heads) gradients.push_back(d.outputs.gradient_norm);
  const bool finite =
      std::all_of(gradients.begin(), gradients.end(), [](double x) { return std::isfinite(x); });
  const double typical = finite ? median(gradients) : 0;
  for (const SiteSimilarity& site : diagnostics.similarities)
    for (const HeadDiagnostics& d : diagnostics.heads) {
      if (d.head.site != site.site) continue;
      const auto warn = [&](const Rule& rule, double value, std::optional<int> other = {}) {
        result.push_back({d.head, rule.warning, rule.figure, value, rule.threshold, other});
      };
      const auto check = [&](const Rule& rule, double value) {
        if (breaks(rule, value)) warn(rule, value);
      };
      const auto check_finite = [&](const Rule& rule, double value) {
        if (breaks(rule, value) || !std::isfinite(value)) warn(rule, value);
      };
      if (d.outputs.value_dim > 1) check(collapsed_rule, d.outputs.effective_rank);
      check(saturated_rule, d.weights.saturation);
      check(dead_rule, d.outputs.relative_output_norm);
      // Beside others as silent as itself a head does not stand out.
      if (!breaks(dead_rule, d.outputs.relative_output_norm)) check(silent_rule, d.outputs.output_norm);
      if (d.weights.positions > 0) check_finite(logits_rule, d.weights.logit_deviation);
      check_finite(gradient_rule, typical > 0 ? d.outputs.gradient_norm / typical : d.outputs.gradient_norm);
      for (int other = 0; other < d.head.head; ++other) {
        const double cka =
            site.cka[static_cast<std::size_t>(d.head.head) * site.heads + static_cast<std::size_t>(other)];
        if (breaks(redundant_rule, cka)) warn(redundant_rule, cka, other);
      }
    }
  return result;
}

std::string Warning::message() const {
  const Rule& rule = **std::find_if(rules.begin(), rules.end(), [&](const Rule* r) {
    return r->warning == warning && r->figure == figure;
  });
  const std::string with = other ? concat(" with head ", *other) : "";
  return concat(nn::name(head.site.kind), " layer ", head.site.layer, " head ", head.head, " is ", warning,
                with, ": ", figure, ' ', value, rule.above ? " > " : " < ", threshold, "; ", rule.advice);
}

}  // namespace polyhead::heads
