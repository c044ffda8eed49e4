#include "polyhead/metrics/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "percentile_interval.h"
#include "polyhead/core/error.h"
#include "polyhead/core/parallel.h"
#include "polyhead/core/rng.h"

namespace polyhead::metrics {
namespace {

using Sample = std::vector<std::int32_t>;

/// value(random) of every draw; each has random numbers of its own.
template <class Value>
std::vector<double> draw_all(const Resampling& r, std::string_view name, const Value& value) {
  constexpr std::int64_t chunk = 32;
  std::vector<double> values(static_cast<std::size_t>(r.draws));
  const auto draws = static_cast<std::int64_t>(r.draws);
  const RngKey key = RngKey{r.seed}.fold(name);
  parallel_for(r.threads, (draws + chunk - 1) / chunk, [&](std::int64_t c, int) {
    for (std::int64_t i = c * chunk; i < std::min(draws, (c + 1) * chunk); ++i) {
      RandomStream random(key.fold(static_cast<std::uint64_t>(i)));
      values[static_cast<std::size_t>(i)] = value(random);
    }
  });
  return values;
}

Sample draw(RandomStream& random, std::size_t from) {
  Sample sample(from);
  for (std::int32_t& i : sample) i = static_cast<std::int32_t>(random.below(from));
  return sample;
}

void require_draws(const Resampling& r, std::size_t sentences) {
  require(sentences > 0 && r.draws > 0, "resampling ", sentences, " sentences with ", r.draws,
          " draws, expected at least one of each");
}

void require_same(const SentenceStatistics& a, const SentenceStatistics& b) {
  require(a.sentences() == b.sentences() && a.width() == b.width(), "resampling statistics of ",
          a.sentences(), " sentences and of ", b.sentences(), ", expected those of one metric of the same");
}

double p_value(std::span<const double> statistics, const PairedTest& test) {
  // What is equal but for rounding is equal.
  const double rounding = 1e-10 * (std::abs(test.baseline) + std::abs(test.system));
  const double observed = std::abs(test.system - test.baseline) - rounding;
  const auto as_large =
      std::count_if(statistics.begin(), statistics.end(), [=](double x) { return x >= observed; });
  return (static_cast<double>(as_large) + 1) / (static_cast<double>(statistics.size()) + 1);
}

/// |difference| of the two mixtures of one draw of sides.
double mixed_difference(RandomStream& random, const SentenceStatistics& baseline,
                        const SentenceStatistics& system) {
  const std::size_t width = baseline.width();
  std::vector<double> first(width), second(width);
  std::uint32_t bits = 0;
  for (std::size_t s = 0; s < baseline.sentences(); ++s) {
    bits = s % 32 == 0 ? random.next() : bits >> 1;
    auto a = baseline.row(s), b = system.row(s);
    if (bits & 1) std::swap(a, b);
    for (std::size_t i = 0; i < width; ++i) {
      first[i] += a[i];
      second[i] += b[i];
    }
  }
  return std::abs(system.score_of(second) - baseline.score_of(first));
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.) / static_cast<double>(values.size());
}

/// `sentences` has how many each seed has; `score(seed, sample)` is a seed's figure of a sample of them.
template <class ScoreOf>
Estimate hierarchical(const std::vector<std::size_t>& sentences, SentencesOf of, const Resampling& r,
                      const ScoreOf& score) {
  const std::size_t seeds = sentences.size();
  std::vector<double> of_all;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    require_draws(r, sentences[seed]);
    require(of == SentencesOf::each_seed || sentences[seed] == sentences.front(),
            "bootstrap over seeds with the same sentences: ", sentences.front(), " of one and ",
            sentences[seed], " of another");
    Sample all(sentences[seed]);
    std::iota(all.begin(), all.end(), 0);
    of_all.push_back(score(seed, all));
  }
  const auto mean_of_draw = [&](RandomStream& random) {
    Sample drawn = draw(random, seeds), sample;
    std::sort(drawn.begin(), drawn.end());
    double sum = 0, last = 0;
    for (std::size_t i = 0; i < seeds; ++i) {
      const bool first = i == 0 || of == SentencesOf::each_seed;
      const auto seed = static_cast<std::size_t>(drawn[i]);
      if (first) sample = draw(random, sentences[seed]);
      if (first || drawn[i] != drawn[i - 1]) last = score(seed, sample);
      sum += last;
    }
    return sum / static_cast<double>(seeds);
  };
  return percentile_interval(mean(of_all), draw_all(r, "hierarchical", mean_of_draw));
}

}  // namespace

PairedTest paired_bootstrap(const SentenceStatistics& baseline, const SentenceStatistics& system,
                            const Resampling& r) {
  require_same(baseline, system);
  require_draws(r, baseline.sentences());
  PairedTest result{baseline.score(), system.score(), 1, {}};
  const double difference = result.system - result.baseline;
  std::vector<double> differences = draw_all(r, "bootstrap", [&](RandomStream& random) {
    const Sample sample = draw(random, baseline.sentences());
    return system.score(sample) - baseline.score(sample);
  });
  std::vector<double> centred;
  for (const double d : differences) centred.push_back(std::abs(d));
  const double centre = mean(centred);
  for (double& d : centred) d -= centre;
  result.p = p_value(centred, result);
  result.difference = percentile_interval(difference, std::move(differences));
  return result;
}

PairedTest approximate_randomization(const SentenceStatistics& baseline, const SentenceStatistics& system,
                                     const Resampling& r) {
  require_same(baseline, system);
  require_draws(r, baseline.sentences());
  PairedTest result{baseline.score(), system.score(), 1, {}};
  result.p =
      p_value(draw_all(r, "randomization",
                       [&](RandomStream& random) { return mixed_difference(random, baseline, system); }),
              result);
  return result;
}

Estimate hierarchical_bootstrap(std::span<const SentenceStatistics> seeds, SentencesOf sentences,
                                const Resampling& r) {
  require(!seeds.empty(), "bootstrap over seeds: there are none");
  std::vector<std::size_t> sizes;
  for (const SentenceStatistics& seed : seeds) sizes.push_back(seed.sentences());
  return hierarchical(sizes, sentences, r,
                      [&](std::size_t seed, const Sample& sample) { return seeds[seed].score(sample); });
}

Estimate hierarchical_difference(std::span<const SentenceStatistics> baseline,
                                 std::span<const SentenceStatistics> system, SentencesOf sentences,
                                 const Resampling& r) {
  require(!baseline.empty() && baseline.size() == system.size(),
          "bootstrap over pairs of seeds: ", baseline.size(), " of the baseline and ", system.size(),
          " of the system, expected as many, at least one");
  std::vector<std::size_t> sizes;
  for (std::size_t seed = 0; seed < baseline.size(); ++seed) {
    require_same(baseline[seed], system[seed]);
    sizes.push_back(baseline[seed].sentences());
  }
  return hierarchical(sizes, sentences, r, [&](std::size_t seed, const Sample& sample) {
    return system[seed].score(sample) - baseline[seed].score(sample);
  });
}

}  // namespace polyhead::metrics
