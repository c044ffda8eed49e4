#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "polyhead/metrics/confidence.h"

/// Statistics of few numbers: the results of seeds, and p-values.
namespace polyhead::metrics {

/// P(T ≤ t) of Student's distribution with ν degrees of freedom:
///   1 − I_x(ν/2, 1/2)/2 for t ≥ 0,  x = ν/(ν + t²)
/// with the regularised incomplete beta function as its continued fraction (DLMF 8.17.22).
/// Throws Error unless ν is above 0.
double student_t_cdf(double t, double degrees);
/// The t below which a share in (0, 1) of it lies.
double student_t_quantile(double share, double degrees);

/// The mean x̄ of results over seeds with its 95% interval, x̄ ± t₀.₉₇₅(n − 1)·s/√n (Student 1908, "The probable error of
/// a mean").
struct SeedSummary {
  Estimate mean;  ///< in the results' unit; no interval (not a number) of fewer than two, no mean of none
  double deviation = 0;       ///< s, with n − 1; 0 of fewer than two
  std::int64_t seeds = 0;     ///< n
  std::int64_t diverged = 0;  ///< results that are not finite: left out of all else
};
SeedSummary summarize(std::span<const double> results);

/// Differences system − baseline of results paired by seed, with the 95% t interval of their mean and the two-sided
/// paired t-test of "their mean is 0": t = d̄/(s/√n), p = 2·P(T > |t|) with n − 1 degrees of freedom.
struct PairedDifference {
  Estimate difference;   ///< as SeedSummary::mean
  double deviation = 0;  ///< s of the differences
  double
      t = 0,
      p = 1;  ///< not a number of fewer than two pairs; where all differences are equal and not 0, t is infinite
  std::int64_t pairs = 0;     ///< n
  std::int64_t left_out = 0;  ///< pairs of which a result is not finite
};
/// Throws Error unless both have as many results.
PairedDifference paired_difference(std::span<const double> baseline, std::span<const double> system);

/// "No difference of `margin` or more" between results paired by seed, by two one-sided paired t-tests (TOST, Schuirmann
/// 1987): p = max(P(T > (d̄ + margin)/(s/√n)), P(T < (d̄ − margin)/(s/√n))). It holds at the 5% level when p < 0.05,
/// which is when the 90% interval is inside of ±margin.
struct Equivalence {
  double margin = 0, p = 1;
  Estimate difference;  ///< d̄ with its 90% interval
  std::int64_t pairs = 0, left_out = 0;
};
/// Throws Error unless both have as many results, and margin is above 0.
Equivalence paired_equivalence(std::span<const double> baseline, std::span<const double> system,
                               double margin);

/// p-values adjusted for being several, in their order: a test may be called significant at level α when its adjusted p is
/// at most α. Throws Error for one that is not in 0 … 1.
///   holm                max_{j ≤ i} min(1, (m − j + 1)·p₍ⱼ₎), which keeps the chance of any false one (Holm 1979)
///   benjamini_hochberg  min_{j ≥ i} min(1, m·p₍ⱼ₎/j), which keeps the share of false ones (Benjamini & Hochberg 1995)
/// for the i-th smallest of m.
std::vector<double> holm(std::span<const double> p);
std::vector<double> benjamini_hochberg(std::span<const double> p);

/// Spearman's rank correlation ρ: Pearson's of the ranks, equal values having the mean of theirs. p: two-sided, of
/// t = ρ·√((n − 2)/(1 − ρ²)) with n − 2 degrees of freedom. Neither is a number when all values of a side are equal.
struct RankCorrelation {
  double rho = 0, p = 1;
};
/// Throws Error unless both have as many values, at least 3.
RankCorrelation spearman(std::span<const double> a, std::span<const double> b);

}  // namespace polyhead::metrics
