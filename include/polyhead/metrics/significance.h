#pragma once

#include <cstdint>
#include <optional>
#include <span>

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

/// The mean over seeds of a score, with the 95% percentile interval of a bootstrap over seeds, then sentences. A draw takes
/// seeds with replacement and one sample of sentences for all of them: every seed has translated the same sentences, whose
/// difficulty is therefore not averaged out by more seeds (Owen 2007, "The pigeonhole bootstrap", arXiv:0711.1424).
/// Throws Error without seeds.
Estimate hierarchical_bootstrap(std::span<const SentenceStatistics> seeds, const Resampling& resampling = {});
/// The same of system[i] − baseline[i], in pairs of the same seed.
Estimate hierarchical_difference(std::span<const SentenceStatistics> baseline,
                                 std::span<const SentenceStatistics> system,
                                 const Resampling& resampling = {});

}  // namespace polyhead::metrics
