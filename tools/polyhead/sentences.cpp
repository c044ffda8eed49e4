#include "sentences.h"

#include <nlohmann/json.hpp>

#include "polyhead/decode/score.h"
#include "polyhead/metrics/metrics.h"
#include "polyhead/train/validation.h"

namespace polyhead::tools {

AnnotatedSplit plain_split(const std::string& name, const std::vector<std::string>& source,
                           const std::vector<std::string>& target) {
  AnnotatedSplit split{name, std::vector<data::Pair>(source.size())};
  for (std::size_t i = 0; i < source.size(); ++i) {
    split.pairs[i].source = {source[i]};
    split.pairs[i].target = {target[i]};
  }
  return split;
}

std::vector<train::ProbedSentence> scored_sentences(const train::LoadedModel& loaded,
                                                    const AnnotatedSplit& split,
                                                    const std::vector<std::string>& translations,
                                                    int threads) {
  const auto fits = [&](const std::vector<std::int32_t>& ids) {
    return ids.size() > 1 && ids.size() <= static_cast<std::size_t>(loaded.config.model.max_length);
  };
  const metrics::Options options = train::metric_options(loaded.config.evaluation);
  std::vector<train::ProbedSentence> sentences(split.pairs.size());
  std::vector<std::vector<std::int32_t>> sources, targets;
  std::vector<train::ProbedSentence*> scored;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const std::string source = data::text(split.pairs[i].source), target = data::text(split.pairs[i].target);
    sentences[i].translation = translations[i];
    sentences[i].exact_match = metrics::sentence("exact_match", translations[i], {target}, options).score > 0;
    std::vector<std::int32_t> source_ids = loaded.pipeline.encode_source(source),
                              target_ids = loaded.pipeline.encode_target(target);
    if (!fits(source_ids) || !fits(target_ids)) continue;
    scored.push_back(&sentences[i]);
    sources.push_back(std::move(source_ids));
    targets.push_back(std::move(target_ids));
  }
  std::vector<decode::TokenPair> pairs;
  for (std::size_t i = 0; i < scored.size(); ++i) pairs.push_back({sources[i], targets[i]});
  const std::vector<decode::Score> scores = decode::score(*loaded.model, pairs, threads);
  for (std::size_t i = 0; i < scored.size(); ++i) {
    scored[i]->log_probability = scores[i].log_probability;
    scored[i]->tokens = std::ssize(scores[i].tokens);
  }
  return sentences;
}

std::string sentences_jsonl(const AnnotatedSplit& split,
                            const std::vector<train::ProbedSentence>& sentences) {
  using Json = nlohmann::ordered_json;
  std::string text;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const data::Pair& pair = split.pairs[i];
    const train::ProbedSentence& sentence = sentences[i];
    const bool scored = sentence.tokens > 0;
    Json line{{"split", split.name},
              {"index", i},
              {"source", data::text(pair.source)},
              {"target", data::text(pair.target)},
              {"translation", sentence.translation},
              {"exact_match", sentence.exact_match},
              {"log_probability", scored ? Json(sentence.log_probability) : Json(nullptr)},
              {"tokens", scored ? Json(sentence.tokens) : Json(nullptr)},
              {"probes", Json::array()}};
    for (std::size_t p = 0; p < pair.probes.size(); ++p) {
      Json probe = probe_json(pair.probes[p]);
      probe["slot_correct"] = sentence.probes[p].slot_correct;
      probe["contrastive_correct"] = sentence.probes[p].contrastive_correct();
      probe["margin"] = sentence.probes[p].margin;
      line["probes"].push_back(std::move(probe));
    }
    text += line.dump() + '\n';
  }
  return text;
}

}  // namespace polyhead::tools
