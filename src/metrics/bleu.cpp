#include "polyhead/metrics/bleu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>

#include "names.h"
#include "ngrams.h"
#include "polyhead/core/unicode.h"
#include "polyhead/metrics/tokenizer.h"

namespace polyhead::metrics {

namespace {

constexpr std::size_t max_order = 4;

struct Smoothing {
  std::string_view name;
  std::optional<double> default_value;  // none: takes no value
};

const std::array<Smoothing, 4> smoothings{{{"exp", {}}, {"floor", 0.1}, {"add-k", 1.0}, {"none", {}}}};

struct Statistics {
  std::array<std::int64_t, max_order> matches{}, totals{};
  std::int64_t hypothesis_length = 0, reference_length = 0;

  static constexpr std::size_t width = 2 * max_order + 2;
  void append_to(std::vector<double>& rows) const {
    for (const auto& counts : {matches, totals})
      for (const std::int64_t n : counts) rows.push_back(static_cast<double>(n));
    rows.insert(rows.end(), {static_cast<double>(hypothesis_length), static_cast<double>(reference_length)});
  }
  static Statistics from(std::span<const double> sums) {
    const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(sums[i]); };
    Statistics result{.hypothesis_length = at(2 * max_order), .reference_length = at(2 * max_order + 1)};
    for (std::size_t n = 0; n < max_order; ++n) {
      result.matches[n] = at(n);
      result.totals[n] = at(max_order + n);
    }
    return result;
  }
};

/// The value of the chosen smoothing, if it takes one.
std::optional<double> smoothing_value(const Options& options) {
  const Smoothing& smoothing = find_row(smoothings, "BLEU smoothing", options.smooth);
  if (!options.smooth_value) return smoothing.default_value;
  require(smoothing.default_value.has_value(), "BLEU smoothing ", smoothing.name, " takes no value, but ",
          *options.smooth_value, " was given");
  require(std::isfinite(*options.smooth_value) && *options.smooth_value >= 0, "BLEU smoothing value ",
          *options.smooth_value, " is not a number of at least 0");
  return options.smooth_value;
}

std::vector<std::string> tokens_of(const std::string& line, const Options& options) {
  const Tokenizer tokenize = find_tokenizer(options.tokenize);
  return options.lowercase ? tokenize(unicode::lowercase(line)) : tokenize(line);
}

/// The length closest to `length`, the shorter of two that are equally close.
std::int64_t closest_length(std::int64_t length, const std::vector<std::int64_t>& candidates) {
  const auto distance = [length](std::int64_t candidate) {
    return std::pair(std::abs(length - candidate), candidate);
  };
  return *std::min_element(candidates.begin(), candidates.end(),
                           [&](auto a, auto b) { return distance(a) < distance(b); });
}

void count_line(const Corpus& corpus, std::size_t line, const Options& options, Statistics& sum) {
  const Units hypothesis(tokens_of(corpus.hypotheses[line], options), " ");
  std::deque<Units> references;
  std::vector<std::int64_t> lengths;
  for (const auto& stream : corpus.references) {
    references.emplace_back(tokens_of(stream[line], options), " ");
    lengths.push_back(references.back().total(1));
  }
  sum.hypothesis_length += hypothesis.total(1);
  sum.reference_length += closest_length(hypothesis.total(1), lengths);
  for (std::size_t order = 1; order <= max_order; ++order) {
    NgramCounts hypothesis_counts, most;  // most: the largest count in any one reference
    hypothesis.count(order, hypothesis_counts);
    for (const Units& reference : references) {
      NgramCounts counts;
      reference.count(order, counts);
      for (const auto& [ngram, count] : counts) most[ngram] = std::max(most[ngram], count);
    }
    sum.matches[order - 1] += count_matches(hypothesis_counts, most);
    sum.totals[order - 1] += hypothesis.total(order);
  }
}

double brevity_penalty(const Statistics& sum) {
  if (sum.hypothesis_length >= sum.reference_length) return 1;
  if (sum.hypothesis_length == 0) return 0;
  return std::exp(1 - static_cast<double>(sum.reference_length) / static_cast<double>(sum.hypothesis_length));
}

struct Precisions {
  std::array<double, max_order> percent{};
  std::size_t orders = max_order;  // how many of them the score is the mean of
};

Precisions precisions_of(const Statistics& sum, const Options& options, std::optional<double> value) {
  Precisions result;
  double halvings = 1;
  for (std::size_t n = 0; n < max_order; ++n) {
    const double added = options.smooth == "add-k" && n > 0 ? *value : 0;
    const double matches = static_cast<double>(sum.matches[n]) + added;
    const double total = static_cast<double>(sum.totals[n]) + added;
    if (total == 0) break;
    if (options.effective_order) result.orders = n + 1;
    if (matches > 0)
      result.percent[n] = 100 * matches / total;
    else if (options.smooth == "exp")
      result.percent[n] = 100 / ((halvings *= 2) * total);
    else if (options.smooth == "floor")
      result.percent[n] = 100 * *value / total;
  }
  return result;
}

double geometric_mean(const Precisions& precisions) {
  double sum = 0;
  for (std::size_t n = 0; n < precisions.orders; ++n) {
    if (precisions.percent[n] == 0) return 0;
    sum += std::log(precisions.percent[n]);
  }
  return std::exp(sum / static_cast<double>(precisions.orders));
}

struct Parts {
  Precisions precisions;
  double penalty = 0;
  double score() const { return penalty * geometric_mean(precisions); }
};

Parts parts_of(const Statistics& sum, const Options& options, std::optional<double> value) {
  const bool matched = std::any_of(sum.matches.begin(), sum.matches.end(), [](auto n) { return n > 0; });
  return {matched ? precisions_of(sum, options, value) : Precisions{}, brevity_penalty(sum)};
}

std::string smoothing_entry(const Options& options, std::optional<double> value) {
  if (!value) return options.smooth;
  char bracket[32];
  std::snprintf(bracket, sizeof bracket, "[%.2f]", *value);
  return options.smooth + bracket;
}

}  // namespace

std::vector<std::string> smoothing_names() { return names_of(smoothings); }

Score bleu(const Corpus& corpus, const Options& options) {
  const std::optional<double> value = smoothing_value(options);
  Statistics sum;
  for (std::size_t line = 0; line < corpus.size(); ++line) count_line(corpus, line, options, sum);

  const Parts parts = parts_of(sum, options, value);
  Score result;
  result.score = parts.score();
  for (std::size_t n = 0; n < max_order; ++n)
    result.details.emplace_back(concat("precision_", n + 1), parts.precisions.percent[n]);
  result.details.emplace_back("brevity_penalty", parts.penalty);
  result.details.emplace_back("hypothesis_length", static_cast<double>(sum.hypothesis_length));
  result.details.emplace_back("reference_length", static_cast<double>(sum.reference_length));
  result.signature = make_signature(corpus, {{"case", options.lowercase ? "lc" : "mixed"},
                                             {"eff", options.effective_order ? "yes" : "no"},
                                             {"tok", options.tokenize},
                                             {"smooth", smoothing_entry(options, value)}});
  return result;
}

SentenceStatistics bleu_statistics(const Corpus& corpus, const Options& options) {
  const std::optional<double> value = smoothing_value(options);
  std::vector<double> rows;
  for (std::size_t line = 0; line < corpus.size(); ++line) {
    Statistics statistics;
    count_line(corpus, line, options, statistics);
    statistics.append_to(rows);
  }
  return {Statistics::width, std::move(rows), [options, value](std::span<const double> sums) {
            return parts_of(Statistics::from(sums), options, value).score();
          }};
}

}  // namespace polyhead::metrics
