#include "polyhead/metrics/metrics.h"

#include <fmt/format.h>

#include "commands.h"
#include "files.h"
#include "polyhead/metrics/bleu.h"
#include "polyhead/metrics/tokenizer.h"
#include "scores.h"

namespace polyhead::tools {
namespace {

struct Options {
  std::string hypothesis;
  std::vector<std::string> references, metrics{"bleu", "chrf", "ter"};
  metrics::Options options;
  bool sentences = false, json = false;
};

/// The metrics of every line, separated by tabs.
std::string sentence_scores(const Options& o, const std::vector<std::string>& hypotheses,
                            const std::vector<std::vector<std::string>>& references) {
  std::string text;
  for (std::size_t line = 0; line < hypotheses.size(); ++line) {
    std::vector<std::string> of_line;
    for (const auto& stream : references) of_line.push_back(stream[line]);
    for (std::size_t m = 0; m < o.metrics.size(); ++m)
      text += (m ? "\t" : "") +
              number_text(metrics::sentence(o.metrics[m], hypotheses[line], of_line, o.options).score);
    text += '\n';
  }
  return text;
}

int run(const Options& o) {
  for (const std::string& metric : o.metrics) metrics::find_metric(metric);  // before any file is read
  const std::vector<std::string> hypotheses = read_input(o.hypothesis).lines;
  std::vector<std::vector<std::string>> references;
  for (const std::string& path : o.references)
    references.push_back(read_beside(path, o.hypothesis, hypotheses.size()));
  Scores scores;
  for (const std::string& metric : o.metrics)
    scores.emplace_back(metric, metrics::corpus(metric, hypotheses, references, o.options));
  write_output("", o.sentences ? sentence_scores(o, hypotheses, references)
                   : o.json    ? scores_json(scores)
                               : scores_table(scores));
  return 0;
}

}  // namespace

Command add_metrics(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("metrics", "Compare translations with references: BLEU, chrF, TER and others");
  auto o = std::make_shared<Options>();
  command->add_option("--hypothesis", o->hypothesis, "translations, a sentence a line, plain or gzip")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--reference", o->references,
                   "reference translations, line by line; may be given several times")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--metrics", o->metrics,
                   fmt::format("some of {}; token_accuracy compares the words of two texts place by place, "
                               "unlike that of evaluate and training",
                               fmt::join(metrics::metric_names(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--tokenize", o->options.tokenize, "BLEU: tokenizer")
      ->check(CLI::IsMember(metrics::tokenizer_names()))
      ->capture_default_str();
  command->add_option("--smooth", o->options.smooth, "BLEU: smoothing of orders without a match")
      ->check(CLI::IsMember(metrics::smoothing_names()))
      ->capture_default_str();
  command->add_option("--smooth-value", o->options.smooth_value,
                      "BLEU: for floor (0.1 by default) and add-k (1 by default)");
  command->add_flag("--lowercase", o->options.lowercase, "ignore case; all but TER");
  command->add_flag("--case-sensitive", o->options.case_sensitive, "TER: mind case");
  command->add_option("--word-order", o->options.word_order, "chrF: word n-grams up to this order; 2: chrF++")
      ->check(CLI::Range(0, 6))
      ->capture_default_str();
  CLI::Option* json =
      command->add_flag("--json", o->json, "one JSON object with scores in full precision and signatures");
  command
      ->add_flag("--sentences", o->sentences, "scores of every line instead of the whole, separated by tabs")
      ->excludes(json);
  return {command, [o] { return run(*o); }};
}

}  // namespace polyhead::tools
