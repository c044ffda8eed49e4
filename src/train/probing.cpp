#include "polyhead/train/probing.h"

#include <algorithm>

#include "polyhead/core/error.h"
#include "polyhead/core/parallel.h"
#include "polyhead/decode/score.h"
#include "polyhead/metrics/metrics.h"
#include "polyhead/train/validation.h"

namespace polyhead::train {
namespace {

using Ids = std::vector<std::int32_t>;
using Tokens = std::vector<std::string>;

std::int32_t most_pieces(const Config& config) { return config.model.max_length - 1; }

Ids encode_target(const text::TextPipeline& pipeline, const Config& config, const Tokens& tokens) {
  const std::string line = data::text(tokens);
  Ids ids = pipeline.encode_target(line);
  require<DataError>(static_cast<std::int64_t>(ids.size()) - 1 <= most_pieces(config), "\"", line, "\" has ",
                     ids.size() - 1, " pieces, expected at most ", most_pieces(config),
                     " (model.max_length - 1)");
  return ids;
}

/// How many ids of a target are of its first `count` tokens.
std::size_t pieces_of_first(const text::TextPipeline& pipeline, const Tokens& target, int count,
                            const Ids& ids) {
  Ids first = pipeline.encode_target(data::text({target.begin(), target.begin() + count}));
  first.pop_back();  // its eos
  return static_cast<std::size_t>(std::mismatch(first.begin(), first.end(), ids.begin(), ids.end()).first -
                                  first.begin());
}

bool slot_correct(const text::TextPipeline& pipeline, const data::Pair& pair, int slot, const Ids& ids,
                  const Ids& predictions) {
  require(0 <= slot && slot < static_cast<int>(pair.target.size()), "a probe's slot is ", slot, ", but \"",
          data::text(pair.target), "\" has ", pair.target.size(), " tokens");
  const auto begin = static_cast<std::ptrdiff_t>(pieces_of_first(pipeline, pair.target, slot, ids)),
             end = static_cast<std::ptrdiff_t>(pieces_of_first(pipeline, pair.target, slot + 1, ids));
  return std::equal(ids.begin() + begin, ids.begin() + end, predictions.begin() + begin);
}

/// Each pair's target, then the contrasts of its probes.
std::vector<Ids> encode_targets(const text::TextPipeline& pipeline, const Config& config,
                                std::span<const data::Pair> pairs) {
  std::vector<Ids> targets;
  for (const data::Pair& pair : pairs) {
    targets.push_back(encode_target(pipeline, config, pair.target));
    for (const data::Probe& probe : pair.probes)
      targets.push_back(encode_target(pipeline, config, probe.contrast));
  }
  return targets;
}

/// Asks `attention` about the sentences that pairs of a target or a contrast belong to.
decode::AttentionHook by_sentence(const decode::AttentionHook& attention,
                                  std::span<const std::int64_t> sentence_of) {
  return [&attention, sentence_of](const nn::AttentionCall& call, const decode::QueryRows& rows) {
    std::vector<std::int64_t> sentences;
    for (const std::int64_t pair : rows.sentences)
      sentences.push_back(sentence_of[static_cast<std::size_t>(pair)]);
    return attention(call, {sentences, rows.position});
  };
}

}  // namespace

ProbedText probe(const nn::Transformer& model, const text::TextPipeline& pipeline, const Config& config,
                 std::span<const data::Pair> pairs, int threads, const decode::Progress& translated,
                 const decode::AttentionHook& attention) {
  std::vector<std::string> source_lines;
  for (const data::Pair& pair : pairs) source_lines.push_back(data::text(pair.source));
  const EncodedLines sources = encode_lines(pipeline, config, source_lines);
  const std::vector<Ids> targets = encode_targets(pipeline, config, pairs);
  std::vector<decode::TokenPair> token_pairs;
  std::vector<std::int64_t> sentence_of;
  for (std::size_t i = 0, next = 0; i < pairs.size(); ++i)
    for (std::size_t n = 0; n < 1 + pairs[i].probes.size(); ++n, ++next) {
      token_pairs.push_back({sources.ids[i], targets[next]});
      sentence_of.push_back(static_cast<std::int64_t>(i));
    }
  const std::vector<std::string> translations =
      translate_lines(model, pipeline, config, source_lines, threads, translated, attention).lines(pipeline);
  const std::vector<decode::Score> scores =
      decode::score(model, token_pairs, threads, {},
                    attention ? by_sentence(attention, sentence_of) : decode::AttentionHook{});

  ProbedText result{.sentences = std::vector<ProbedSentence>(pairs.size()), .cropped = sources.cropped};
  const metrics::Options options = metric_options(config.evaluation);
  for (std::size_t i = 0, next = 0; i < pairs.size(); ++i) {
    const data::Pair& pair = pairs[i];
    ProbedSentence& sentence = result.sentences[i];
    const Ids& target = targets[next];
    const decode::Score& right = scores[next++];
    sentence.translation = translations[i];
    sentence.exact_match =
        metrics::sentence("exact_match", translations[i], {data::text(pair.target)}, options).score > 0;
    sentence.log_probability = right.log_probability;
    sentence.tokens = std::ssize(right.tokens);
    for (const data::Probe& p : pair.probes)
      sentence.probes.push_back({slot_correct(pipeline, pair, p.slot, target, right.predictions),
                                 right.log_probability - scores[next++].log_probability});
  }
  return result;
}

namespace {

/// One probe of a sentence.
struct Case {
  std::int32_t sentence;
  const data::Probe* probe;
  const ProbeOutcome* outcome;
};

/// A part of a text: sentences, and probes of them.
struct Part {
  std::vector<std::int32_t> sentences;
  std::vector<Case> cases;

  /// Cases are added sentence by sentence.
  void add(const Case& c) {
    if (sentences.empty() || sentences.back() != c.sentence) sentences.push_back(c.sentence);
    cases.push_back(c);
  }
};

using Sentences = std::span<const ProbedSentence>;

ProbeRates rates_of(const Part& part, Sentences sentences) {
  const auto n = static_cast<std::int64_t>(part.cases.size());
  return {static_cast<std::int64_t>(part.sentences.size()), n,
          metrics::wilson(std::count_if(part.sentences.begin(), part.sentences.end(),
                                        [&](std::int32_t i) {
                                          return sentences[static_cast<std::size_t>(i)].exact_match;
                                        }),
                          static_cast<std::int64_t>(part.sentences.size())),
          metrics::wilson(std::count_if(part.cases.begin(), part.cases.end(),
                                        [](const Case& c) { return c.outcome->slot_correct; }),
                          n),
          metrics::wilson(std::count_if(part.cases.begin(), part.cases.end(),
                                        [](const Case& c) { return c.outcome->contrastive_correct(); }),
                          n)};
}

std::map<int, ProbeRates> rates_by(int data::Probe::*parameter, const Part& part, Sentences sentences) {
  std::map<int, Part> parts;
  for (const Case& c : part.cases) parts[c.probe->*parameter].add(c);
  std::map<int, ProbeRates> result;
  if (parts.size() > 1)
    for (const auto& [value, of_value] : parts) result[value] = rates_of(of_value, sentences);
  return result;
}

/// All sentences and probes, then those of each phenomenon.
std::vector<Part> parts_of(std::span<const data::Pair> pairs, Sentences sentences) {
  std::vector<Part> parts(1 + data::phenomenon_names.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::vector<data::Probe>& probes = pairs[i].probes;
    const std::vector<ProbeOutcome>& outcomes = sentences[i].probes;
    require<DataError>(probes.size() == outcomes.size(), "probing: sentence ", i + 1, " has ", probes.size(),
                       " probes, but results of ", outcomes.size());
    const auto number = static_cast<std::int32_t>(i);
    parts[0].sentences.push_back(number);
    for (std::size_t p = 0; p < probes.size(); ++p) {
      const Case found{number, &probes[p], &outcomes[p]};
      parts[0].add(found);
      parts[1 + static_cast<std::size_t>(probes[p].phenomenon)].add(found);
    }
  }
  return parts;
}

}  // namespace

ProbingReport probing_report(std::span<const data::Pair> pairs, Sentences sentences,
                             const metrics::Options& options, int threads) {
  require<DataError>(!pairs.empty() && pairs.size() == sentences.size(), "probing: ", sentences.size(),
                     " results of ", pairs.size(), " sentences");
  const std::vector<Part> parts = parts_of(pairs, sentences);
  std::vector<std::string> translations, targets;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    translations.push_back(sentences[i].translation);
    targets.push_back(data::text(pairs[i].target));
  }
  const metrics::SentenceStatistics chrf =
      metrics::sentence_statistics("chrf", translations, {targets}, options);
  std::vector<PhenomenonReport> reports(parts.size());
  parallel_for(threads, static_cast<std::int64_t>(parts.size()), [&](std::int64_t i, int) {
    const Part& part = parts[static_cast<std::size_t>(i)];
    if (part.sentences.empty()) return;
    PhenomenonReport& result = reports[static_cast<std::size_t>(i)];
    result.rates = rates_of(part, sentences);
    result.chrf = metrics::bootstrap(part.sentences, [&](auto lines) { return chrf.score(lines); });
    if (i == 0) return;
    result.by_distance = rates_by(&data::Probe::distance, part, sentences);
    result.by_attractors = rates_by(&data::Probe::attractors, part, sentences);
    result.by_depth = rates_by(&data::Probe::depth, part, sentences);
  });
  ProbingReport result{.all = reports[0], .phenomena = {}};
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (!parts[i].sentences.empty())
      result.phenomena.emplace_back(static_cast<data::Phenomenon>(i - 1), reports[i]);
  return result;
}

}  // namespace polyhead::train
