#include "polyhead/heads/evaluation.h"

#include <algorithm>
#include <map>

#include "polyhead/core/error.h"
#include "polyhead/core/parallel.h"
#include "polyhead/metrics/metrics.h"
#include "polyhead/metrics/statistics.h"
#include "polyhead/train/validation.h"

namespace polyhead::heads {
namespace {

std::vector<double> losses(std::span<const double> log_probabilities) {
  std::vector<double> result;
  for (const double p : log_probabilities) result.push_back(-p);
  return result;
}

Figure loss_figure(const Text& text, std::span<const double> log_probabilities) {
  std::vector<double> tokens;
  for (const auto& target : text.targets) tokens.push_back(static_cast<double>(target.size()));
  return {"loss", {}, metrics::ratio_statistics(losses(log_probabilities), tokens)};
}

/// Of the sentences that have such probes: exact matches, and the two kinds of probes that are right.
void add_shares(std::vector<Figure>& figures, const Text& text,
                std::span<const train::ProbedSentence> sentences,
                std::optional<data::Phenomenon> phenomenon) {
  std::vector<double> matches, slots, contrasts, probes;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    double slot = 0, contrastive = 0, count = 0;
    for (std::size_t p = 0; p < sentences[i].probes.size(); ++p) {
      if (phenomenon && text.pairs[i].probes[p].phenomenon != *phenomenon) continue;
      slot += sentences[i].probes[p].slot_correct ? 1 : 0;
      contrastive += sentences[i].probes[p].contrastive_correct() ? 1 : 0;
      ++count;
    }
    if (count == 0) continue;
    matches.push_back(sentences[i].exact_match ? 1 : 0);
    slots.push_back(slot);
    contrasts.push_back(contrastive);
    probes.push_back(count);
  }
  if (probes.empty()) return;
  if (phenomenon) figures.push_back({"exact_match", phenomenon, metrics::mean_statistics(matches, 100)});
  figures.push_back({"slot_accuracy", phenomenon, metrics::ratio_statistics(slots, probes, 100)});
  figures.push_back({"contrastive_accuracy", phenomenon, metrics::ratio_statistics(contrasts, probes, 100)});
}

std::vector<Figure> text_figures(const train::LoadedModel& loaded, const Text& text,
                                 std::span<const train::ProbedSentence> sentences) {
  std::vector<double> log_probabilities;
  std::vector<std::string> translations, targets;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    log_probabilities.push_back(sentences[i].log_probability);
    translations.push_back(sentences[i].translation);
    targets.push_back(data::text(text.pairs[i].target));
  }
  std::vector<Figure> figures{loss_figure(text, log_probabilities)};
  for (const char* metric : {"bleu", "chrf", "exact_match"})
    figures.push_back({metric,
                       {},
                       metrics::sentence_statistics(metric, translations, {targets},
                                                    train::metric_options(loaded.config.evaluation))});
  add_shares(figures, text, sentences, {});
  for (std::size_t p = 0; p < data::phenomenon_names.size(); ++p)
    add_shares(figures, text, sentences, static_cast<data::Phenomenon>(p));
  return figures;
}

}  // namespace

std::vector<decode::TokenPair> Text::ids() const {
  std::vector<decode::TokenPair> result;
  for (std::size_t i = 0; i < pairs.size(); ++i) result.push_back({sources[i], targets[i]});
  return result;
}

Text encode_text(std::vector<data::Pair> pairs, const train::LoadedModel& loaded) {
  Text text;
  const auto fits = [&](const std::vector<std::int32_t>& ids) {
    const auto pieces = static_cast<std::int64_t>(ids.size()) - 1;
    return pieces >= 1 && pieces <= loaded.config.max_pieces();
  };
  for (data::Pair& pair : pairs) {
    std::vector<std::int32_t> source = loaded.pipeline.encode_source(data::text(pair.source)),
                              target = loaded.pipeline.encode_target(data::text(pair.target));
    if (!fits(source) || !fits(target)) {
      ++text.left_out;
      continue;
    }
    text.pairs.push_back(std::move(pair));
    text.sources.push_back(std::move(source));
    text.targets.push_back(std::move(target));
  }
  require<DataError>(!text.pairs.empty(), "no sentence pairs of 1 to ", loaded.config.max_pieces(),
                     " pieces left");
  return text;
}

std::vector<Figure> evaluate(const train::LoadedModel& loaded, const Text& text, bool translate, int threads,
                             const decode::AttentionHook& attention, const decode::Progress& progress) {
  if (translate)
    return text_figures(
        loaded, text,
        train::probe(*loaded.model, loaded.pipeline, loaded.config, text.pairs, threads, progress, attention)
            .sentences);
  std::vector<double> log_probabilities;
  for (const decode::Score& score : decode::score(*loaded.model, text.ids(), threads, progress, attention))
    log_probabilities.push_back(score.log_probability);
  return {loss_figure(text, log_probabilities)};
}

std::vector<std::vector<Change>> compare(std::span<const Figure> baseline,
                                         std::span<const std::vector<Figure>> changed,
                                         const metrics::Resampling& resampling) {
  std::vector<std::vector<Change>> result(changed.size(), std::vector<Change>(baseline.size()));
  for (const std::vector<Figure>& figures : changed)
    require(figures.size() == baseline.size(), "heads: ", figures.size(), " figures beside ",
            baseline.size());
  const auto count = static_cast<std::int64_t>(changed.size() * baseline.size());
  parallel_for(resampling.threads, count, [&](std::int64_t i, int) {
    const std::size_t model = static_cast<std::size_t>(i) / baseline.size(),
                      f = static_cast<std::size_t>(i) % baseline.size();
    const metrics::PairedTest test = metrics::approximate_randomization(
        baseline[f].statistics, changed[model][f].statistics, {resampling.seed, resampling.draws, 1});
    result[model][f] = {test.system, test.system - test.baseline, test.p, 1};
  });
  std::map<std::string, std::vector<Change*>> families;
  for (std::vector<Change>& changes : result)
    for (std::size_t f = 0; f < baseline.size(); ++f)
      families[(baseline[f].phenomenon ? "phenomenon " : "") + baseline[f].name].push_back(&changes[f]);
  for (const auto& [name, family] : families) {
    std::vector<double> p;
    for (const Change* change : family) p.push_back(change->p);
    const std::vector<double> q = metrics::benjamini_hochberg(p);
    for (std::size_t i = 0; i < q.size(); ++i) family[i]->q = q[i];
  }
  return result;
}

}  // namespace polyhead::heads
