#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace polyhead::metrics {

/// How the metrics read their text. Each metric takes what concerns it; the signature says which.
struct Options {
  std::string tokenize = "13a";             ///< BLEU: one of tokenizer_names()
  std::string smooth = "exp";               ///< BLEU: one of smoothing_names()
  std::optional<double> smooth_value = {};  ///< BLEU: for floor (default 0.1) and add-k (default 1)
  bool effective_order = false;             ///< BLEU: leave out n-gram orders longer than the text
  bool lowercase = false;                   ///< all but TER
  int word_order = 0;                       ///< chrF: 0 to 6; 2 is chrF++
  bool case_sensitive = false;              ///< TER
};

/// What a metric says of a corpus, in percent.
struct Score {
  double score = 0;
  /// All that is needed to compute the score again, in sacreBLEU's form.
  std::string signature;
  /// What the score is made of, by name.
  std::vector<std::pair<std::string, double>> details;
};

/// A view of hypotheses and reference streams, each with one line for every hypothesis.
struct Corpus {
  /// `reference_streams[r][line]` is the r-th reference of a line. An empty reference is a reference.
  /// Throws Error without a reference stream; DataError when there are no lines, the streams differ in
  /// length, or a line is not UTF-8.
  Corpus(std::span<const std::string> lines, std::span<const std::vector<std::string>> reference_streams);

  std::size_t size() const { return hypotheses.size(); }

  std::span<const std::string> hypotheses;
  std::span<const std::vector<std::string>> references;
};

/// `nrefs:1|key:value|...|version:polyhead-0.1.0`
std::string make_signature(const Corpus& corpus,
                           const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace polyhead::metrics
