#include <cmath>
#include <string>
#include <vector>

#include "polyhead/core/error.h"
#include "polyhead/metrics/metrics.h"
#include "polyhead/metrics/tokenizer.h"
#include "targets.h"

namespace polyhead::fuzz {

void metrics(std::string_view input) {
  if (input.empty()) return;
  const auto bits = static_cast<unsigned char>(input[0]);
  polyhead::metrics::Options options;
  const std::vector<std::string> tokenizers = polyhead::metrics::tokenizer_names();
  options.tokenize = tokenizers[(bits & 3U) % tokenizers.size()];
  options.lowercase = (bits & 4) != 0;
  options.case_sensitive = (bits & 8) != 0;
  options.word_order = (bits & 16) != 0 ? 2 : 0;
  options.effective_order = (bits & 32) != 0;

  std::vector<std::string> hypotheses;
  std::vector<std::vector<std::string>> references(1);
  input.remove_prefix(1);
  for (bool hypothesis = true; !input.empty(); hypothesis = !hypothesis) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    (hypothesis ? hypotheses : references[0]).emplace_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  for (const std::string& name : polyhead::metrics::metric_names()) {
    try {
      const double score = polyhead::metrics::corpus(name, hypotheses, references, options).score;
      expect(std::isfinite(score) && score >= 0 && (score <= 100.0001 || name == "ter"),
             "a score out of its range");
      for (std::size_t i = 0; i < hypotheses.size(); ++i)
        polyhead::metrics::sentence(name, hypotheses[i], {references[0][i]}, options);
    } catch (const Error& error) {
      expect(error.status() == Status::data, "an error of another kind");
    }
  }
}

}  // namespace polyhead::fuzz
