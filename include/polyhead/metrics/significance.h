#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "polyhead/metrics/confidence.h"
#include "polyhead/metrics/sentence_statistics.h"

/// Whether two systems differ on the sentences of a test set. sacreBLEU counts draws of > alone, which is the same but where
/// many draws are equal: it would call systems different that are the same, or differ in one sentence (with ≥ the
/// tests keep their level: Phipson & Smyth 2010, arXiv:1603.05766). Every result is a function of its arguments alone, threads
/// aside. All throw Error unless both systems have the same number of sentences, and there are sentences and draws.
namespace polyhead::metrics {

struct Resampling {
  std::uint64_t seed = 12345;
  int draws = 10000;
  int threads = 1;
};

struct PairedTest {
  double baseline = 0, system = 0;     ///< scores of all sentences
  double p = 1;                        ///< two-sided, of "both are equally good"
  std::optional<Estimate> difference;  ///< system − baseline with its 95% interval, of the bootstrap
};

/// Paired bootstrap (Koehn 2004, W04-3250) as sacreBLEU 2 defines it (Post 2018, W18-6319): dᵢ = |system − baseline| of the
/// i-th draw of sentences with replacement, the same for both, and d that of all sentences;
///   p = (1 + #{i: dᵢ − mean d ≥ d}) / (1 + draws)
/// The interval is from the 2.5th to the 97.5th percentile of system − baseline.
PairedTest paired_bootstrap(const SentenceStatistics& baseline, const SentenceStatistics& system,
                            const Resampling& resampling = {});

/// Paired approximate randomisation (Riezler & Maxwell 2005, W05-0908) as sacreBLEU 2 defines it: in the i-th draw every
/// sentence changes sides with probability ½, and dᵢ is the difference of the two mixtures;
///   p = (1 + #{i: dᵢ ≥ d}) / (1 + draws)
PairedTest approximate_randomization(const SentenceStatistics& baseline, const SentenceStatistics& system,
                                     const Resampling& resampling = {});

/// Which sentences seeds are measured on.
enum class SentencesOf {
  each_seed,  ///< each on its own, as where a test set is drawn with the seed
  all_seeds   ///< all on the same
};

/// The scores of S seeds of one system, and those of every draw of hierarchical_bootstrap().
struct DrawnScores {
  std::vector<double> observed;  ///< [S], of all sentences
  std::vector<double> drawn;     ///< [draws, S]

  /// Over seeds, with the 95% percentile interval of the draws.
  Estimate mean() const;
};
/// In pairs of the same seed, draw by draw. Throws Error unless both are of as many seeds and draws; that they are of one call, or
/// of two over the same sentences, is up to the caller.
DrawnScores operator-(const DrawnScores& system, const DrawnScores& baseline);

/// A bootstrap over seeds, then sentences, of systems that have as many seeds and sentences each: all of them take the
/// same draws. A draw takes S seeds sⱼ with replacement, and for each of them as many of its sentences as it has, with
/// replacement again:
///   θ* = 1/S · Σⱼ score of seed sⱼ on its sample j
/// (Davison & Hinkley 1997, "Bootstrap methods and their application", §3.8; Saravanan, Berman & Sober 2020, "Application
/// of the hierarchical bootstrap to multi-level data in neuroscience"). Of the mean of n values a seed this has the variance
///   σ²/S + τ²/(S·n)      σ²: of the seeds' means, over S;  τ²: of a seed's values, over n, the seeds' mean
/// Where all seeds have the same sentences, a draw takes one sample of them for all of its seeds: how hard a sentence is
/// is then not averaged out by more seeds, so the second term is not divided by S (Owen 2007, "The pigeonhole bootstrap",
/// arXiv:0711.1424). As σ² is over S, and not S − 1, and no t is taken, the interval is too narrow for few seeds: where
/// sentences add nothing, about √((S − 1)/S)·1.96/t₀.₉₇₅(S − 1) of the t interval, 0.63 of it for five. It belongs beside that one.
/// `systems` are the statistics of each, seed by seed. The draws depend on the resampling and the numbers of sentences alone.
/// Throws Error without seeds, without sentences, where systems differ in their numbers, and where all seeds should have
/// the same sentences but differ in their number.
std::vector<DrawnScores> hierarchical_bootstrap(
    std::span<const std::vector<const SentenceStatistics*>> systems, SentencesOf sentences,
    const Resampling& resampling = {});

}  // namespace polyhead::metrics
