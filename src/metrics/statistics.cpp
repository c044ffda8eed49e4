#include "polyhead/metrics/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "polyhead/core/error.h"

namespace polyhead::metrics {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The continued fraction of I_x(a, b), by Lentz's method; it converges fast for x < (a + 1)/(a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double tiny = 1e-300, precise = 1e-16;
  constexpr int most_terms = 10000;
  const auto away_from_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m <= most_terms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double factor = 1;
    for (const double term : {even, odd}) {
      d = 1 / away_from_zero(1 + term * d);
      c = away_from_zero(1 + term / c);
      value *= factor = c * d;
    }
    if (std::abs(factor - 1) < precise) break;
  }
  return value;
}

/// I_x(a, b)
double incomplete_beta(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
                                   : 1 - front * beta_fraction(1 - x, b, a) / b;
}

/// P(T > |t|)·2
double two_sided(double t, double degrees) {
  return std::isinf(t) ? 0 : incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5);
}

struct Moments {
  double mean = nan, deviation = 0;
  std::int64_t n = 0;
  double error() const { return deviation / std::sqrt(static_cast<double>(n)); }
  double degrees() const { return static_cast<double>(n - 1); }
  /// (mean − from)/error, of at least two.
  double t(double from) const {
    const double distance = mean - from;
    if (deviation > 0) return distance / error();
    return distance == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), distance);
  }
  /// The interval that `share` of t lies in.
  Estimate interval(double share) const {
    if (n < 2) return {mean, nan, nan};
    const double half = student_t_quantile((1 + share) / 2, degrees()) * error();
    return {mean, mean - half, mean + half};
  }
};

Moments moments(std::span<const double> values) {
  Moments result;
  result.n = std::ssize(values);
  if (values.empty()) return result;
  const auto n = static_cast<double>(result.n);
  result.mean = std::accumulate(values.begin(), values.end(), 0.) / n;
  // Of equal values the mean can be off by a rounding, which would be taken for a deviation.
  if (std::all_of(values.begin(), values.end(), [&](double x) { return x == values.front(); })) {
    result.mean = values.front();
    return result;
  }
  double squares = 0;
  for (const double x : values) squares += (x - result.mean) * (x - result.mean);
  result.deviation = std::sqrt(squares / (n - 1));
  return result;
}

struct Differences {
  std::vector<double> values;
  std::int64_t left_out = 0;
};

Differences differences(std::span<const double> baseline, std::span<const double> system) {
  require(baseline.size() == system.size(), "paired results: ", baseline.size(), " of the baseline and ",
          system.size(), " of the system, expected one of each for every seed");
  Differences result;
  for (std::size_t i = 0; i < baseline.size(); ++i) {
    if (std::isfinite(baseline[i]) && std::isfinite(system[i]))
      result.values.push_back(system[i] - baseline[i]);
    else
      ++result.left_out;
  }
  return result;
}

}  // namespace

double student_t_cdf(double t, double degrees) {
  require(degrees > 0, "Student's t with ", degrees, " degrees of freedom, expected more than 0");
  const double tail = two_sided(t, degrees) / 2;
  return t < 0 ? tail : 1 - tail;
}

double student_t_quantile(double share, double degrees) {
  require(share > 0 && share < 1, "quantile of a share of ", share, ", expected one between 0 and 1");
  require(degrees > 0, "Student's t with ", degrees, " degrees of freedom, expected more than 0");
  if (share == 0.5) return 0;
  const double tail = 2 * std::min(share, 1 - share);  // of both sides
  double low = 0, high = 1;
  while (two_sided(high, degrees) > tail) high *= 2;
  for (double middle = high / 2; middle > low && middle < high; middle = std::midpoint(low, high))
    (two_sided(middle, degrees) > tail ? low : high) = middle;
  return share < 0.5 ? -high : high;
}

SeedSummary summarize(std::span<const double> results) {
  std::vector<double> finite;
  std::copy_if(results.begin(), results.end(), std::back_inserter(finite),
               [](double x) { return std::isfinite(x); });
  const Moments m = moments(finite);
  return {m.interval(0.95), m.deviation, m.n, std::ssize(results) - m.n};
}

PairedDifference paired_difference(std::span<const double> baseline, std::span<const double> system) {
  const Differences paired = differences(baseline, system);
  const Moments m = moments(paired.values);
  const double t = m.n < 2 ? nan : m.t(0);
  return {m.interval(0.95), m.deviation, t, m.n < 2 ? nan : two_sided(t, m.degrees()), m.n, paired.left_out};
}

Equivalence paired_equivalence(std::span<const double> baseline, std::span<const double> system,
                               double margin) {
  require(margin > 0, "equivalence within ", margin, ", expected a margin above 0");
  const Differences paired = differences(baseline, system);
  const Moments m = moments(paired.values);
  Equivalence result{margin, nan, m.interval(0.9), m.n, paired.left_out};
  if (m.n >= 2)
    result.p = std::max(student_t_cdf(-m.t(-margin), m.degrees()), student_t_cdf(m.t(margin), m.degrees()));
  return result;
}

namespace {

/// The places of `values` in ascending order.
std::vector<std::size_t> ascending(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

void require_probabilities(std::span<const double> p) {
  for (std::size_t i = 0; i < p.size(); ++i)
    require(p[i] >= 0 && p[i] <= 1, "p-value ", i + 1, " is ", p[i], ", expected a number in 0 to 1");
}

std::vector<double> ranks(std::span<const double> values) {
  const std::vector<std::size_t> order = ascending(values);
  std::vector<double> result(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) result[order[i]] = static_cast<double>(begin + end - 1) / 2 + 1;
  }
  return result;
}

}  // namespace

std::vector<double> holm(std::span<const double> p) {
  require_probabilities(p);
  std::vector<double> adjusted(p.size());
  double largest = 0;
  auto left = static_cast<double>(p.size());
  for (const std::size_t i : ascending(p))
    adjusted[i] = largest = std::max(largest, std::min(1., left-- * p[i]));
  return adjusted;
}

std::vector<double> benjamini_hochberg(std::span<const double> p) {
  require_probabilities(p);
  std::vector<double> adjusted(p.size());
  const std::vector<std::size_t> order = ascending(p);
  const auto m = static_cast<double>(p.size());
  double smallest = 1;
  for (std::size_t rank = order.size(); rank > 0; --rank) {
    const std::size_t i = order[rank - 1];
    adjusted[i] = smallest = std::min(smallest, m * p[i] / static_cast<double>(rank));
  }
  return adjusted;
}

RankCorrelation spearman(std::span<const double> a, std::span<const double> b) {
  require(a.size() == b.size() && a.size() >= 3, "rank correlation of ", a.size(), " and ", b.size(),
          " values, expected as many of both, at least 3");
  for (const std::span<const double> values : {a, b})
    require(std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); }),
            "rank correlation of values that are not all finite");
  const std::vector<double> first = ranks(a), second = ranks(b);
  const double mean = (static_cast<double>(a.size()) + 1) / 2;
  double product = 0, first_square = 0, second_square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = first[i] - mean, y = second[i] - mean;
    product += x * y;
    first_square += x * x;
    second_square += y * y;
  }
  if (first_square == 0 || second_square == 0) return {nan, nan};
  const double rho = std::clamp(product / std::sqrt(first_square * second_square), -1., 1.);
  const double degrees = static_cast<double>(a.size()) - 2;
  return {rho, std::abs(rho) == 1 ? 0 : two_sided(rho * std::sqrt(degrees / (1 - rho * rho)), degrees)};
}

}  // namespace polyhead::metrics
