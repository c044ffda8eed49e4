#include "polyhead/metrics/metrics.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "files.h"
#include "polyhead/metrics/bleu.h"
#include "polyhead/metrics/significance.h"
#include "polyhead/metrics/tokenizer.h"
#include "scores.h"

namespace polyhead::tools {
namespace {

struct MetricsOptions {
  std::string hypothesis, baseline, significance = "bootstrap";
  std::vector<std::string> references, metrics{"bleu", "chrf", "ter"};
  metrics::Options options;
  bool sentences = false, json = false;
  metrics::Resampling resampling;
};

/// The metrics of every line, separated by tabs.
std::string sentence_scores(const MetricsOptions& o, const std::vector<std::string>& hypotheses,
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

using Tests = std::vector<std::pair<std::string, metrics::PairedTest>>;

Tests significance_tests(const MetricsOptions& o, const std::vector<std::string>& hypotheses,
                         const std::vector<std::vector<std::string>>& references) {
  const std::vector<std::string> baseline = read_beside(o.baseline, o.hypothesis, hypotheses.size());
  const auto test =
      o.significance == "bootstrap" ? metrics::paired_bootstrap : metrics::approximate_randomization;
  Tests tests;
  for (const std::string& metric : o.metrics)
    tests.emplace_back(
        metric, test(metrics::sentence_statistics(metric, baseline, references, o.options),
                     metrics::sentence_statistics(metric, hypotheses, references, o.options), o.resampling));
  return tests;
}

std::string tested_json(const MetricsOptions& o, const Scores& scores, const Tests& tests) {
  nlohmann::ordered_json report = scores_object(scores);
  for (const auto& [metric, test] : tests) {
    nlohmann::ordered_json& entry = report[metric]["significance"];
    entry = {{"test", o.significance},
             {"draws", o.resampling.draws},
             {"seed", o.resampling.seed},
             {"baseline", test.baseline},
             {"difference", test.system - test.baseline},
             {"p", test.p}};
    if (test.difference) {
      entry["low"] = test.difference->low;
      entry["high"] = test.difference->high;
    }
  }
  return report.dump() + '\n';
}

std::string tested_table(const MetricsOptions& o, const Tests& tests) {
  std::string table = fmt::format("{:15}{:>10}{:>10}{:>12}{:>9}{}\n", "metric", "baseline", "system",
                                  "difference", "p", o.significance == "bootstrap" ? "   95% interval" : "");
  for (const auto& [metric, test] : tests) {
    table += fmt::format("{:15}{:10.4f}{:10.4f}{:+12.4f}{:9.4f}", metric, test.baseline, test.system,
                         test.system - test.baseline, test.p);
    if (test.difference)
      table += fmt::format("   {:+.4f} to {:+.4f}", test.difference->low, test.difference->high);
    table += '\n';
  }
  return table;
}

int run_metrics(const MetricsOptions& o) {
  for (const std::string& metric : o.metrics) metrics::find_metric(metric);  // before any file is read
  const std::vector<std::string> hypotheses = read_input(o.hypothesis).lines;
  std::vector<std::vector<std::string>> references;
  for (const std::string& path : o.references)
    references.push_back(read_beside(path, o.hypothesis, hypotheses.size()));
  Scores scores;
  for (const std::string& metric : o.metrics)
    scores.emplace_back(metric, metrics::corpus(metric, hypotheses, references, o.options));
  if (!o.baseline.empty()) {
    const Tests tests = significance_tests(o, hypotheses, references);
    write_output(
        "", o.json ? tested_json(o, scores, tests) : scores_table(scores) + '\n' + tested_table(o, tests));
    return 0;
  }
  write_output("", o.sentences ? sentence_scores(o, hypotheses, references)
                   : o.json    ? scores_json(scores)
                               : scores_table(scores));
  return 0;
}

}  // namespace

Command add_metrics(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("metrics", "Compare translations with references: BLEU, chrF, TER and others");
  auto o = std::make_shared<MetricsOptions>();
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
  CLI::Option* sentences = command
                               ->add_flag("--sentences", o->sentences,
                                          "scores of every line instead of the whole, separated by tabs")
                               ->excludes(json);
  CLI::Option* baseline =
      command
          ->add_option("--baseline", o->baseline,
                       "translations of the same by another system: whether the two differ, as sacreBLEU's "
                       "--paired-bs and --paired-ar say it")
          ->type_name("FILE")
          ->excludes(sentences);
  command
      ->add_option("--significance", o->significance,
                   "the test: paired bootstrap or approximate randomization, both two-sided")
      ->check(CLI::IsMember({"bootstrap", "randomization"}))
      ->capture_default_str()
      ->needs(baseline);
  command->add_option("--draws", o->resampling.draws, "samples that the test draws")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str()
      ->needs(baseline);
  add_seed(*command, o->resampling.seed, "of the test's random numbers")->needs(baseline);
  add_threads(*command, o->resampling.threads);
  return {command, [o] { return run_metrics(*o); }};
}

}  // namespace polyhead::tools
