#include "polyhead/metrics/chrf.h"

#include <deque>

#include "ngrams.h"
#include "polyhead/core/error.h"
#include "polyhead/core/unicode.h"
#include "polyhead/metrics/tokenizer.h"

namespace polyhead::metrics {

namespace {

constexpr std::size_t char_order = 6;
constexpr int max_word_order = 6;
constexpr double beta = 2;

/// What one order contributes.
struct Counts {
  std::int64_t hypothesis = 0, reference = 0, matches = 0;
};
using Statistics = std::vector<Counts>;  // characters first, then words

struct Means {
  double precision = 0, recall = 0;
};

Means means_of(const Statistics& statistics) {
  Means means;
  double orders = 0;
  for (const Counts& counts : statistics) {
    if (counts.hypothesis == 0 || counts.reference == 0) continue;
    means.precision += static_cast<double>(counts.matches) / static_cast<double>(counts.hypothesis);
    means.recall += static_cast<double>(counts.matches) / static_cast<double>(counts.reference);
    ++orders;
  }
  if (orders == 0) return {};
  return {means.precision / orders, means.recall / orders};
}

double f_score(const Means& means) {
  if (means.precision + means.recall == 0) return 0;
  constexpr double factor = beta * beta;
  return 100 * ((1 + factor) * means.precision * means.recall / (factor * means.precision + means.recall));
}

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Words with one ASCII punctuation mark cut off their end or else their beginning, unless they are nothing
/// but one character.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string& word : unicode::split(line)) {
    const std::size_t last = word.size() - 1;
    if (last > 0 && is_punctuation(word[last])) {
      words.push_back(word.substr(0, last));
      words.push_back(word.substr(last));
    } else if (last > 0 && is_punctuation(word[0])) {
      words.push_back(word.substr(0, 1));
      words.push_back(word.substr(1));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

/// A line's n-gram counts, order by order.
class Ngrams {
 public:
  Ngrams(const std::string& line, std::size_t word_order)
      : characters_(tokenize_char(line), ""), words_(words_of(line), " "), counts_(char_order + word_order) {
    for (std::size_t order = 1; order <= char_order; ++order) characters_.count(order, counts_[order - 1]);
    for (std::size_t order = 1; order <= word_order; ++order)
      words_.count(order, counts_[char_order + order - 1]);
  }

  Statistics against(const Ngrams& reference) const {
    Statistics statistics(counts_.size());
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      statistics[i].reference = reference.total(i);
      // An order that the reference lacks is no fault of the hypothesis.
      statistics[i].hypothesis = statistics[i].reference > 0 ? total(i) : 0;
      statistics[i].matches = count_matches(counts_[i], reference.counts_[i]);
    }
    return statistics;
  }

 private:
  std::int64_t total(std::size_t i) const {
    return i < char_order ? characters_.total(i + 1) : words_.total(i - char_order + 1);
  }

  Units characters_, words_;
  std::vector<NgramCounts> counts_;
};

Statistics best_statistics(const Corpus& corpus, std::size_t line, const Options& options) {
  const auto word_order = static_cast<std::size_t>(options.word_order);
  const auto read = [&](const std::string& text) {
    return options.lowercase ? unicode::lowercase(text) : text;
  };
  const Ngrams hypothesis(read(corpus.hypotheses[line]), word_order);
  Statistics best;
  double best_score = -1;
  for (const auto& stream : corpus.references) {
    Statistics statistics = hypothesis.against(Ngrams(read(stream[line]), word_order));
    const double score = f_score(means_of(statistics));
    if (score <= best_score) continue;
    best_score = score;
    best = std::move(statistics);
  }
  return best;
}

void check(const Options& options) {
  require(options.word_order >= 0 && options.word_order <= max_word_order, "chrF word order ",
          options.word_order, " is not in 0 to ", max_word_order);
}

}  // namespace

Score chrf(const Corpus& corpus, const Options& options) {
  check(options);
  Statistics sum(char_order + static_cast<std::size_t>(options.word_order));
  for (std::size_t line = 0; line < corpus.size(); ++line) {
    const Statistics statistics = best_statistics(corpus, line, options);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i].hypothesis += statistics[i].hypothesis;
      sum[i].reference += statistics[i].reference;
      sum[i].matches += statistics[i].matches;
    }
  }
  const Means means = means_of(sum);
  Score result;
  result.score = f_score(means);
  result.details = {{"precision", 100 * means.precision}, {"recall", 100 * means.recall}};
  result.signature = make_signature(corpus, {{"case", options.lowercase ? "lc" : "mixed"},
                                             {"eff", "yes"},
                                             {"nc", std::to_string(char_order)},
                                             {"nw", std::to_string(options.word_order)},
                                             {"space", "no"}});
  return result;
}

SentenceStatistics chrf_statistics(const Corpus& corpus, const Options& options) {
  check(options);
  const std::size_t orders = char_order + static_cast<std::size_t>(options.word_order);
  std::vector<double> rows;
  for (std::size_t line = 0; line < corpus.size(); ++line)
    for (const Counts& counts : best_statistics(corpus, line, options))
      for (const std::int64_t count : {counts.hypothesis, counts.reference, counts.matches})
        rows.push_back(static_cast<double>(count));
  return {3 * orders, std::move(rows), [](std::span<const double> sums) {
            Statistics statistics(sums.size() / 3);
            for (std::size_t i = 0; i < statistics.size(); ++i) {
              const auto at = [&](std::size_t n) { return static_cast<std::int64_t>(sums[3 * i + n]); };
              statistics[i] = {at(0), at(1), at(2)};
            }
            return f_score(means_of(statistics));
          }};
}

}  // namespace polyhead::metrics
