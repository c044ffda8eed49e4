#include "polyhead/metrics/significance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "polyhead/core/error.h"
#include "polyhead/metrics/metrics.h"
#include "support/message.h"

namespace polyhead::metrics {
namespace {

using polyhead::testing::message_of;
using Lines = std::vector<std::string>;
using Values = std::vector<double>;

const Lines reference{"the dog sleeps in the old house", "a cat saw the small bird today",
                      "my sister reads a long letter",   "we do not run by the red river",
                      "she stands near the green door",  "they have two dogs and a cat"};
const Lines good{"the dog sleeps in the house",  "a cat saw the small bird today",
                 "my sister reads the letter",   "we do not run by the river red",
                 "she stands at the green door", "they have two dogs and cat"};
const Lines bad{"the dog sleep in an old house", "a cat saw small birds today",
                "my sister reads a long letter", "we run by the red river",
                "she is near a green door now",  "they have two cats and a dog"};

std::vector<std::string> all_metrics() { return metric_names(); }

TEST(SentenceStatistics, GiveTheScoreOfAnyLines) {
  const Lines second{
      "the dog is asleep in the house", "", "my sister is reading a letter", "we are not running", "x",
      "they own dogs and a cat"};
  for (const std::string& metric : all_metrics())
    for (const std::vector<std::int32_t>& lines :
         std::vector<std::vector<std::int32_t>>{{0, 1, 2, 3, 4, 5}, {2}, {5, 0, 0, 4, 5}})
      for (const Options& options :
           {Options{}, Options{.smooth = "floor", .lowercase = true, .word_order = 2}}) {
        const SentenceStatistics statistics = sentence_statistics(metric, bad, {reference, second}, options);
        Lines chosen;
        std::vector<Lines> references(2);
        for (const std::int32_t line : lines) {
          const auto at = static_cast<std::size_t>(line);
          chosen.push_back(bad[at]);
          references[0].push_back(reference[at]);
          references[1].push_back(second[at]);
        }
        EXPECT_DOUBLE_EQ(statistics.score(lines), corpus(metric, chosen, references, options).score)
            << metric;
        EXPECT_EQ(statistics.sentences(), 6u);
      }
}

TEST(SentenceStatistics, OfRatiosAndMeans) {
  const SentenceStatistics ratio = ratio_statistics(Values{1, 3}, Values{2, 3}, 100);
  EXPECT_EQ(ratio.score(), 80);
  EXPECT_EQ(ratio.score(std::vector<std::int32_t>{0, 0}), 50);
  EXPECT_EQ(mean_statistics(Values{1, 2, 6}).score(), 3);
  EXPECT_EQ(message_of<Error>([] {
              ratio_statistics(Values{1, 3}, Values{2, 0});
            }),
            "ratio: the denominator of sentence 2 is 0, expected more than 0");
  EXPECT_EQ(message_of<Error>([] {
              ratio_statistics(Values{1, 3}, Values{2});
            }),
            "ratio of 2 numerators and 1 denominators");
  EXPECT_EQ(message_of<Error>([] {
              mean_statistics(Values{1, std::nan("")});
            }),
            "sentence statistics: those of sentence 2 are not finite");
}

/// How far a share of so many draws may be from its probability: five standard errors.
double tolerance(double p, int draws) { return 5 * std::sqrt(p * (1 - p) / draws) + 1. / draws; }

/// The test by its definition, over all 2⁶ mixtures, each scored from its text.
double exact_randomization(const std::string& metric) {
  const auto difference = [&](unsigned swapped) {
    Lines first = bad, second = good;
    for (std::size_t i = 0; i < reference.size(); ++i)
      if (swapped >> i & 1) std::swap(first[i], second[i]);
    return std::abs(corpus(metric, first, {reference}).score - corpus(metric, second, {reference}).score);
  };
  int larger = 0;
  for (unsigned swapped = 0; swapped < 64; ++swapped) larger += difference(swapped) >= difference(0) - 1e-9;
  return larger / 64.;
}

TEST(ApproximateRandomization, IsTheShareOfAllMixturesThatDifferMore) {
  for (const std::string& metric : all_metrics()) {
    const PairedTest test = approximate_randomization(sentence_statistics(metric, bad, {reference}),
                                                      sentence_statistics(metric, good, {reference}));
    EXPECT_DOUBLE_EQ(test.baseline, corpus(metric, bad, {reference}).score);
    EXPECT_DOUBLE_EQ(test.system, corpus(metric, good, {reference}).score);
    const double exact = exact_randomization(metric);
    EXPECT_NEAR(test.p, exact, tolerance(exact, 10000)) << metric;
    EXPECT_FALSE(test.difference);
  }
}

/// The test by its definition, over all 4⁴ samples of four sentences.
struct ExactBootstrap {
  double p = 0, mean = 0;
  std::vector<double> differences;

  ExactBootstrap(const Values& baseline, const Values& system) {
    double mean_size = 0, difference = 0;
    for (std::size_t i = 0; i < 4; ++i) difference += (system[i] - baseline[i]) / 4;
    for (unsigned sample = 0; sample < 256; ++sample) {
      double sum = 0;
      for (unsigned i = 0; i < 4; ++i) sum += system[sample >> 2 * i & 3] - baseline[sample >> 2 * i & 3];
      differences.push_back(sum / 4);
      mean_size += std::abs(sum / 4) / 256;
    }
    for (const double d : differences) p += (std::abs(d) - mean_size >= std::abs(difference) - 1e-12) / 256.;
  }
};

TEST(PairedBootstrap, IsTheShareOfAllSamplesThatAreFartherOut) {
  const Values baseline{0.1, 0.7, 0.25, 0.3};
  for (const Values& system : {Values{0.65, 0.6, 0.4, 0.31}, Values{0.1, 1.9, 0.2, 0.1}}) {
    const ExactBootstrap exact(baseline, system);
    const PairedTest test = paired_bootstrap(mean_statistics(baseline), mean_statistics(system));
    EXPECT_NEAR(test.p, exact.p, tolerance(exact.p, 10000));
    ASSERT_TRUE(test.difference);
    EXPECT_DOUBLE_EQ(test.difference->score, test.system - test.baseline);
    std::vector<double> sorted = exact.differences;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_GE(test.difference->low, sorted[2]);
    EXPECT_LE(test.difference->low, sorted[12]);
    EXPECT_GE(test.difference->high, sorted[243]);
    EXPECT_LE(test.difference->high, sorted[253]);
  }
}

TEST(PairedTests, FindNoDifferenceOfASystemFromItself) {
  for (const std::string& metric : all_metrics()) {
    const SentenceStatistics same = sentence_statistics(metric, good, {reference, bad});
    EXPECT_EQ(approximate_randomization(same, same, {.draws = 500}).p, 1) << metric;
    EXPECT_EQ(paired_bootstrap(same, same, {.draws = 500}).p, 1) << metric;
    EXPECT_EQ(*paired_bootstrap(same, same, {.draws = 500}).difference, (Estimate{0, 0, 0})) << metric;
  }
}

TEST(PairedTests, DoNotTakeOneSentenceForADifference) {
  Values baseline(50, 0.3), system = baseline;
  system[7] = 0.8;
  EXPECT_EQ(approximate_randomization(mean_statistics(baseline), mean_statistics(system)).p, 1);
  EXPECT_GT(paired_bootstrap(mean_statistics(baseline), mean_statistics(system)).p, 0.05);
}

TEST(PairedTests, AreAFunctionOfTheSeedAndNotOfThreads) {
  const SentenceStatistics a = sentence_statistics("chrf", bad, {reference}),
                           b = sentence_statistics("chrf", good, {reference});
  const PairedTest one = paired_bootstrap(a, b, {.draws = 1000}),
                   more = paired_bootstrap(a, b, {.draws = 1000, .threads = 3}),
                   other = paired_bootstrap(a, b, {.seed = 2, .draws = 1000});
  EXPECT_EQ(one.p, more.p);
  EXPECT_EQ(*one.difference, *more.difference);
  EXPECT_NE(*one.difference, *other.difference);
  EXPECT_EQ(approximate_randomization(a, b, {.draws = 1000}).p,
            approximate_randomization(a, b, {.draws = 1000, .threads = 3}).p);
}

TEST(PairedTests, RefuseWhatDoesNotFit) {
  const SentenceStatistics two = mean_statistics(Values{1, 2}), three = mean_statistics(Values{1, 2, 3}),
                           none = mean_statistics(Values{});
  EXPECT_EQ(message_of<Error>([&] { paired_bootstrap(two, three); }),
            "resampling statistics of 2 sentences and of 3, expected those of one metric of the same");
  EXPECT_EQ(message_of<Error>([&] { approximate_randomization(none, none); }),
            "resampling 0 sentences with 10000 draws, expected at least one of each");
  EXPECT_THROW(paired_bootstrap(two, two, {.draws = 0}), Error);
}

TEST(HierarchicalBootstrap, RefusesWhatDoesNotFit) {
  const SentenceStatistics two = mean_statistics(Values{1, 2}), three = mean_statistics(Values{1, 2, 3}),
                           none = mean_statistics(Values{});
  using Systems = std::vector<std::vector<const SentenceStatistics*>>;
  const auto message = [](const Systems& systems, SentencesOf of = SentencesOf::each_seed) {
    return message_of<Error>([&] { hierarchical_bootstrap(systems, of, {.draws = 10}); });
  };
  EXPECT_EQ(message({}), "bootstrap over seeds: there are none");
  EXPECT_EQ(message({{}}), "bootstrap over seeds: there are none");
  EXPECT_EQ(message({{&none}}), "resampling 0 sentences with 10 draws, expected at least one of each");
  EXPECT_EQ(message({{&two}, {&two, &two}}), "bootstrap of systems of 1 and of 2 seeds, expected as many");
  EXPECT_EQ(message({{&two, &two}, {&two, &three}}),
            "bootstrap of systems of 2 and of 3 sentences, expected as many, and those of one metric");
  EXPECT_EQ(message({{&two, &three}}, SentencesOf::all_seeds),
            "bootstrap over seeds with the same sentences: 2 of one and 3 of another");
  const DrawnScores one{{1}, {1, 2}}, more{{1, 2}, {1, 2}}, fewer{{1}, {1}};
  EXPECT_THROW(one - more, Error);
  EXPECT_THROW(one - fewer, Error);
}

/// Ten seeds whose figures are a seed's effect plus a sentence's, and baselines with the sentence's alone.
struct SeedsAndSentences {
  std::vector<SentenceStatistics> systems, baselines;
  double mean = 0, seed_mean = 0, seed_variance = 0, sentence_variance = 0;

  SeedsAndSentences() {
    Values of_seed, of_sentence;
    for (int s = 0; s < 10; ++s) of_seed.push_back(0.4 * std::sin(1 + 5. * s));
    for (int i = 0; i < 200; ++i) of_sentence.push_back(3 * std::cos(7. * i));
    seed_mean = mean_of(of_seed);
    mean = seed_mean + mean_of(of_sentence);
    seed_variance = variance_of(of_seed);
    sentence_variance = variance_of(of_sentence);
    for (const double seed : of_seed) {
      Values system;
      for (const double sentence : of_sentence) system.push_back(seed + sentence);
      systems.push_back(mean_statistics(system));
      baselines.push_back(mean_statistics(of_sentence));
    }
  }
  static double mean_of(const Values& values) {
    return std::accumulate(values.begin(), values.end(), 0.) / static_cast<double>(values.size());
  }
  static double variance_of(const Values& values) {
    double sum = 0;
    for (const double x : values) sum += std::pow(x - mean_of(values), 2);
    return sum / static_cast<double>(values.size());
  }
};

using Seeds = std::vector<SentenceStatistics>;

/// The scores of systems in the draws that they share.
std::vector<DrawnScores> scores_of(const std::vector<Seeds>& systems, SentencesOf of,
                                   const Resampling& resampling) {
  std::vector<std::vector<const SentenceStatistics*>> pointers(systems.size());
  for (std::size_t i = 0; i < systems.size(); ++i)
    for (const SentenceStatistics& seed : systems[i]) pointers[i].push_back(&seed);
  return hierarchical_bootstrap(pointers, of, resampling);
}

/// The width of the interval that a normal distribution of this variance has.
double normal_width(double variance) { return 2 * 1.959964 * std::sqrt(variance); }

/// σ²/S + τ²/N where all seeds have the same sentences: more seeds bring down the first part alone.
TEST(HierarchicalBootstrap, HasTheVarianceOfSeedsAndOfTheSentencesTheyShare) {
  const SeedsAndSentences of;
  const auto scores = scores_of({of.systems, of.baselines}, SentencesOf::all_seeds, {.draws = 4000});
  const Estimate mean = scores[0].mean();
  EXPECT_NEAR(mean.score, of.mean, 1e-12);
  const double width = normal_width(of.seed_variance / 10 + of.sentence_variance / 200);
  EXPECT_NEAR(mean.high - mean.low, width, 0.05 * width);
  // What all sentences have in common falls out of differences in pairs: the seeds are left.
  const Estimate difference = (scores[0] - scores[1]).mean();
  EXPECT_NEAR(difference.score, of.seed_mean, 1e-12);
  const double left = normal_width(of.seed_variance / 10);
  EXPECT_NEAR(difference.high - difference.low, left, 0.05 * left);
}

/// σ²/S + τ²/(S·n) where each seed has its own: more seeds bring down both parts.
TEST(HierarchicalBootstrap, HasTheVarianceOfSeedsAndOfTheSentencesOfEach) {
  const SeedsAndSentences of;
  const Estimate mean = scores_of({of.systems}, SentencesOf::each_seed, {.draws = 4000}).front().mean();
  EXPECT_NEAR(mean.score, of.mean, 1e-12);
  const double width = normal_width((of.seed_variance + of.sentence_variance / 200) / 10);
  EXPECT_NEAR(mean.high - mean.low, width, 0.05 * width);
}

/// The mean of two seeds, of three and of four sentences, in pairs. `low` and `high` are the percentiles of all outcomes there are,
/// by numpy:
///   d = [[0.31, -0.12, 0.77], [0.05, 0.93, 0.42, 1.31]]
///   one = [[np.mean(s) for s in itertools.product(x, repeat=len(x))] for x in d]
///   v = np.concatenate(one); w = np.concatenate([np.full(len(o), 0.5 / len(o)) for o in one])
///   total = np.add.outer(v, v).ravel() / 2; weight = np.outer(w, w).ravel()
///   order = np.argsort(total); np.interp([0.025, 0.975], np.cumsum(weight[order]), total[order])
TEST(HierarchicalBootstrap, IsThatOfAllOutcomes) {
  const Values a0{1, 2, 3}, a1{0, 1, 0, 2}, b0{1.31, 1.88, 3.77}, b1{0.05, 1.93, 0.42, 3.31};
  const auto scores =
      scores_of({{mean_statistics(a0), mean_statistics(a1)}, {mean_statistics(b0), mean_statistics(b1)}},
                SentencesOf::each_seed, {.draws = 100000});
  const Estimate difference = (scores[1] - scores[0]).mean();
  EXPECT_NEAR(difference.score, (0.32 + 0.6775) / 2, 1e-12);
  EXPECT_NEAR(difference.low, 0.1000, 0.01);
  EXPECT_NEAR(difference.high, 0.8988, 0.01);
}

/// Whatever else is drawn with it, on however many threads: of many systems of many counts, each of the draws that it takes alone.
TEST(HierarchicalBootstrap, GivesASystemTheSameDrawsInAnyCompany) {
  std::vector<Seeds> systems;
  for (std::size_t k = 0; k < 5; ++k) {
    systems.emplace_back();
    for (std::size_t seed = 0; seed < 3; ++seed) {
      std::vector<double> rows;
      const std::size_t width = 1 + 3 * k, sentences = 20 + seed;
      for (std::size_t i = 0; i < sentences * width; ++i)
        rows.push_back(std::sin(static_cast<double>(1 + i * (k + 2) + 11 * seed)));
      systems.back().emplace_back(width, rows, [](std::span<const double> sums) {
        return sums.front() + std::accumulate(sums.begin(), sums.end(), 0.) / 3;
      });
    }
  }
  const auto together = scores_of(systems, SentencesOf::each_seed, {.draws = 100, .threads = 3});
  for (std::size_t k = 0; k < systems.size(); ++k) {
    const DrawnScores alone = scores_of({systems[k]}, SentencesOf::each_seed, {.draws = 100}).front();
    EXPECT_EQ(alone.observed, together[k].observed);
    EXPECT_EQ(alone.drawn, together[k].drawn);
    for (std::size_t seed = 0; seed < 3; ++seed) EXPECT_EQ(alone.observed[seed], systems[k][seed].score());
  }
  EXPECT_NE(together[0].drawn,
            scores_of({systems[0]}, SentencesOf::each_seed, {.seed = 1, .draws = 100}).front().drawn);
}

}  // namespace
}  // namespace polyhead::metrics
