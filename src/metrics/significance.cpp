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

/// run(begin, end) for all draws, a few at a time.
template <class Run>
void each_chunk(const Resampling& r, const Run& run) {
  constexpr std::int64_t chunk = 32;
  const auto draws = static_cast<std::int64_t>(r.draws);
  parallel_for(r.threads, (draws + chunk - 1) / chunk, [&](std::int64_t c, int) {
    run(static_cast<std::size_t>(c * chunk), static_cast<std::size_t>(std::min(draws, (c + 1) * chunk)));
  });
}

/// value(random) of every draw; each has random numbers of its own.
template <class Value>
std::vector<double> draw_all(const Resampling& r, std::string_view name, const Value& value) {
  std::vector<double> values(static_cast<std::size_t>(r.draws));
  const RngKey key = RngKey{r.seed}.fold(name);
  each_chunk(r, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      RandomStream random(key.fold(i));
      values[i] = value(random);
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

/// Seeds in order, each with a sample of its sentences.
struct HierarchicalDraw {
  Sample seeds;
  std::vector<Sample> samples;  ///< of each of them, or one of all

  std::size_t seed(std::size_t i) const { return static_cast<std::size_t>(seeds[i]); }
  const Sample& sample(std::size_t i) const { return samples[std::min(i, samples.size() - 1)]; }
};

HierarchicalDraw draw_hierarchical(RandomStream& random, const std::vector<std::size_t>& sentences,
                                   SentencesOf of) {
  HierarchicalDraw result{draw(random, sentences.size()), {}};
  std::sort(result.seeds.begin(), result.seeds.end());
  const std::size_t samples = of == SentencesOf::each_seed ? sentences.size() : 1;
  for (std::size_t i = 0; i < samples; ++i) result.samples.push_back(draw(random, sentences[result.seed(i)]));
  return result;
}

/// The counts of several systems side by side, in strips of a cache line a sentence: a sample is summed strip by strip.
class Strips {
 public:
  static constexpr std::size_t width = 8;

  explicit Strips(const std::vector<const SentenceStatistics*>& systems)
      : sentences_(systems.front()->sentences()) {
    std::size_t columns = 0;
    for (const SentenceStatistics* system : systems) columns += system->width();
    count_ = (columns + width - 1) / width;
    counts_.resize(count_ * sentences_);
    std::size_t column = 0;
    for (const SentenceStatistics* system : systems)
      for (std::size_t i = 0; i < system->width(); ++i, ++column)
        for (std::size_t s = 0; s < sentences_; ++s)
          counts_[column / width * sentences_ + s].of[column % width] = system->row(s)[i];
  }
  std::size_t count() const { return count_; }
  /// Of strip `number`; the sums are added up in the sample's order.
  void sum(std::size_t number, const Sample& sample, double* sums) const {
    const Counts* strip = &counts_[number * sentences_];
    Counts total{};
    for (const std::int32_t s : sample)
      for (std::size_t i = 0; i < width; ++i) total.of[i] += strip[s].of[i];
    std::copy_n(total.of, width, sums);
  }

 private:
  struct alignas(width * sizeof(double)) Counts {
    double of[width];
  };
  std::size_t sentences_, count_ = 0;
  std::vector<Counts> counts_;
};

using Systems = std::span<const std::vector<const SentenceStatistics*>>;

/// Of each seed.
std::vector<std::size_t> numbers_of_sentences(Systems systems, SentencesOf of, const Resampling& r) {
  require(!systems.empty() && !systems.front().empty(), "bootstrap over seeds: there are none");
  std::vector<std::size_t> numbers;
  for (const SentenceStatistics* seed : systems.front()) {
    numbers.push_back(seed->sentences());
    require_draws(r, numbers.back());
    require(of == SentencesOf::each_seed || numbers.back() == numbers.front(),
            "bootstrap over seeds with the same sentences: ", numbers.front(), " of one and ", numbers.back(),
            " of another");
  }
  for (const auto& system : systems) {
    require(system.size() == numbers.size(), "bootstrap of systems of ", numbers.size(), " and of ",
            system.size(), " seeds, expected as many");
    for (std::size_t seed = 0; seed < numbers.size(); ++seed)
      require(system[seed]->sentences() == numbers[seed] && system[seed]->width() == system[0]->width(),
              "bootstrap of systems of ", numbers[seed], " and of ", system[seed]->sentences(),
              " sentences, expected as many, and those of one metric");
  }
  return numbers;
}

/// The scores of every system in one draw after the other.
class HierarchicalScores {
 public:
  HierarchicalScores(Systems systems, SentencesOf of, const Resampling& r)
      : systems_(systems),
        of_(of),
        sentences_(numbers_of_sentences(systems, of, r)),
        key_(RngKey{r.seed}.fold("hierarchical")) {
    for (std::size_t seed = 0; seed < seeds(); ++seed) {
      std::vector<const SentenceStatistics*> of_seed;
      for (const auto& system : systems) of_seed.push_back(system[seed]);
      strips_.emplace_back(of_seed);
    }
    for (const auto& system : systems) {
      DrawnScores scores;
      for (const SentenceStatistics* seed : system) scores.observed.push_back(seed->score());
      scores.drawn.resize(static_cast<std::size_t>(r.draws) * seeds());
      scores_.push_back(std::move(scores));
    }
  }
  /// Draws from `begin` to before `end`.
  void draw(std::size_t begin, std::size_t end) {
    std::vector<HierarchicalDraw> draws;
    for (std::size_t i = begin; i < end; ++i) {
      RandomStream random(key_.fold(i));
      draws.push_back(draw_hierarchical(random, sentences_, of_));
    }
    const std::size_t strips = strips_.front().count(), columns = strips * Strips::width;
    std::vector<double> sums(draws.size() * seeds() * columns);
    for (std::size_t strip = 0; strip < strips; ++strip)  // stays in cache for all of these draws
      for (std::size_t d = 0; d < draws.size(); ++d)
        for (std::size_t i = 0; i < seeds(); ++i)
          strips_[draws[d].seed(i)].sum(strip, draws[d].sample(i),
                                        &sums[(d * seeds() + i) * columns + strip * Strips::width]);
    for (std::size_t d = 0; d < draws.size(); ++d)
      for (std::size_t i = 0; i < seeds(); ++i)
        score(draws[d].seed(i), &sums[(d * seeds() + i) * columns], (begin + d) * seeds() + i);
  }
  std::vector<DrawnScores> take() { return std::move(scores_); }

 private:
  std::size_t seeds() const { return sentences_.size(); }
  void score(std::size_t seed, const double* sums, std::size_t at) {
    for (std::size_t system = 0; system < systems_.size(); ++system) {
      const SentenceStatistics& statistics = *systems_[system][seed];
      scores_[system].drawn[at] = statistics.score_of({sums, statistics.width()});
      sums += statistics.width();
    }
  }

  Systems systems_;
  SentencesOf of_;
  std::vector<std::size_t> sentences_;
  RngKey key_;
  std::vector<Strips> strips_;  ///< of each seed
  std::vector<DrawnScores> scores_;
};

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

Estimate DrawnScores::mean() const {
  const std::size_t seeds = observed.size();
  std::vector<double> of_draws;
  for (std::size_t i = 0; i < drawn.size(); i += seeds)
    of_draws.push_back(std::accumulate(&drawn[i], &drawn[i] + seeds, 0.) / static_cast<double>(seeds));
  return percentile_interval(metrics::mean(observed), std::move(of_draws));
}

DrawnScores operator-(const DrawnScores& system, const DrawnScores& baseline) {
  require(system.observed.size() == baseline.observed.size() && system.drawn.size() == baseline.drawn.size(),
          "bootstrap over pairs of seeds: ", baseline.observed.size(), " of the baseline and ",
          system.observed.size(), " of the system, expected as many, and as many draws");
  DrawnScores difference = system;
  for (std::size_t i = 0; i < baseline.observed.size(); ++i) difference.observed[i] -= baseline.observed[i];
  for (std::size_t i = 0; i < baseline.drawn.size(); ++i) difference.drawn[i] -= baseline.drawn[i];
  return difference;
}

std::vector<DrawnScores> hierarchical_bootstrap(Systems systems, SentencesOf sentences, const Resampling& r) {
  HierarchicalScores scores(systems, sentences, r);
  each_chunk(r, [&](std::size_t begin, std::size_t end) { scores.draw(begin, end); });
  return scores.take();
}

}  // namespace polyhead::metrics
