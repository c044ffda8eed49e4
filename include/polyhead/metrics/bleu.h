#pragma once

#include "polyhead/metrics/score.h"
#include "polyhead/metrics/sentence_statistics.h"

namespace polyhead::metrics {

///   BLEU = BP · exp(¼ Σₙ log pₙ), n = 1…4;  BP = min(1, exp(1 − r/c))  (Papineni et al. 2002, P02-1040)
/// pₙ: clipped n-gram precision over the corpus; c: tokens in the hypotheses; r: tokens in the references,
/// for each line those of the reference closest in length (the shorter of two).
/// An order without a match is smoothed as `smooth` says (Chen and Cherry 2014, W14-3346):
///   exp    pₙ = 1/(2ᵏ·totalₙ) for the k-th such order
///   floor  pₙ = value/totalₙ
///   add-k  value is added to matches and totals of n > 1
///   none   pₙ = 0
/// Without any match the score is 0. Equals sacreBLEU 2 (Post 2018, W18-6319).
/// Details: precision_1…4 in percent, brevity_penalty, hypothesis_length, reference_length.
/// Throws Error for an unknown tokenizer or smoothing, or a value that it cannot take.
Score bleu(const Corpus& corpus, const Options& options);
/// Of each line its matches and n-grams of every order, and both lengths.
SentenceStatistics bleu_statistics(const Corpus& corpus, const Options& options);

/// exp, floor, add-k, none
std::vector<std::string> smoothing_names();

}  // namespace polyhead::metrics
