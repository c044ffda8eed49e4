#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "files.h"
#include "model.h"
#include "phenomena.h"
#include "polyhead/core/version.h"
#include "polyhead/metrics/metrics.h"
#include "polyhead/train/validation.h"
#include "progress.h"
#include "scores.h"
#include "sentences.h"

namespace polyhead::tools {
namespace {

struct EvaluateOptions : ModelOptions {
  std::string split = "test", source, output, sentences;
  std::vector<std::string> targets, metrics{"bleu", "chrf", "exact_match", "loss"};
  int limit = 0;  ///< 0: none
  bool json = false;
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What the model itself is measured by, with the given target as its input.
std::vector<std::string> model_metrics() {
  std::vector<std::string> names;
  for (const auto& [metric, name] : enum_names(train::Metric{}))
    if (!train::needs_decoding(metric)) names.emplace_back(name);
  return names;
}

/// What translations are measured by.
std::vector<std::string> text_metrics() {
  std::vector<std::string> names = metrics::metric_names();
  std::erase_if(names, [of_model = model_metrics()](const auto& name) { return contains(of_model, name); });
  return names;
}

bool any_of(const EvaluateOptions& o, const std::vector<std::string>& names) {
  return std::any_of(o.metrics.begin(), o.metrics.end(),
                     [&](const std::string& m) { return contains(names, m); });
}

/// What --set may change: where a split comes from only when one is read.
std::vector<std::string> settings(const EvaluateOptions& o) {
  std::vector<std::string> result{"decoding.*", "evaluation.*", "data.max_length"};
  if (o.source.empty())
    for (std::string& key : split_settings()) result.push_back(std::move(key));
  return result;
}

/// Text to translate, and references of it.
struct TestSet {
  std::string name;
  std::vector<std::string> source;
  std::vector<std::vector<std::string>> references;
  AnnotatedSplit annotated = {};  ///< of the toy language: the same text with what is known about it
};

TestSet annotated_set(AnnotatedSplit&& split) {
  TestSet set{split.name, {}, {{}}};
  for (const data::Pair& pair : split.pairs) {
    set.source.push_back(data::text(pair.source));
    set.references.front().push_back(data::text(pair.target));
  }
  set.annotated = std::move(split);
  return set;
}

/// The set with what is known about its sentences.
AnnotatedSplit annotated_split_of(const TestSet& set) {
  return set.annotated.pairs.empty() ? plain_split(set.name, set.source, set.references.front())
                                     : set.annotated;
}

TestSet split_set(const EvaluateOptions& o, const train::Config& config) {
  const std::vector<std::string> splits{"train", "valid", "test"};
  require(contains(splits, o.split), "--split: \"", o.split, "\", but data.task ", config.data.task, " has ",
          fmt::format("{}", fmt::join(splits, ", ")), " only");
  data::ParallelText text = load_split(o.split, config);
  if (o.limit > 0 && std::cmp_less(o.limit, text.source.size())) {
    text.source.resize(static_cast<std::size_t>(o.limit));
    text.target.resize(static_cast<std::size_t>(o.limit));
  }
  return {o.split, std::move(text.source), {std::move(text.target)}};
}

TestSet file_set(const EvaluateOptions& o) {
  TestSet set{o.source, read_input(o.source).lines, {}};
  for (const std::string& path : o.targets)
    set.references.push_back(read_beside(path, o.source, set.source.size()));
  return set;
}

std::vector<TestSet> test_sets(const EvaluateOptions& o, const train::Config& config) {
  std::vector<TestSet> sets;
  if (!o.source.empty()) {
    sets.push_back(file_set(o));
  } else if (config.data.task != "grammar") {
    sets.push_back(split_set(o, config));
  } else {
    const std::vector<std::string> names = grammar_splits(o.split);
    require(o.output.empty() || names.size() == 1, "--output: --split ", o.split, " has ", names.size(),
            " splits, expected one; --sentences writes the translations of all");
    for (AnnotatedSplit& split : annotated_splits(names, config, o.limit, o.threads))
      sets.push_back(annotated_set(std::move(split)));
  }
  return sets;
}

metrics::Score model_score(const std::string& metric, const train::Figures& figures,
                           const data::ParallelCorpus& corpus) {
  const auto kind = config::Codec<train::Metric>::read({.kind = config::Node::Kind::scalar, .text = metric});
  const char* unit = metric == "loss" ? "nats|" : metric == "token_accuracy" ? "percent|" : "";
  return {figures.at(kind),
          fmt::format("{}per:token|tok:vocabulary|eos:yes|smooth:no|version:polyhead-{}", unit, version),
          {{"pairs", corpus.size()}, {"target_tokens", static_cast<double>(corpus.target_tokens())}}};
}

Scores model_scores(const EvaluateOptions& o, const train::LoadedModel& loaded, const TestSet& set) {
  const data::ParallelText text{set.name, set.source, set.references.front()};
  const data::ParallelCorpus corpus = train::loss_corpus(loaded.config, text, loaded.pipeline);
  if (corpus.report().kept < corpus.report().read)
    complain("for the loss, " +
             corpus.report().summary(text.name, {.max_length = loaded.config.model.max_length - 1}));
  std::vector<train::Worker> workers(static_cast<std::size_t>(o.threads));
  const train::Figures figures =
      train::loss_figures(*loaded.model, corpus, loaded.config.training.shard_tokens(), workers);
  Scores scores;
  for (const std::string& metric : model_metrics())
    scores.emplace_back(metric, model_score(metric, figures, corpus));
  return scores;
}

/// What is measured on one text.
struct Evaluation {
  Scores scores;
  std::vector<std::string> translations;
  std::vector<train::ProbedSentence> sentences;  ///< of the toy language, and where they are asked for
  train::ProbingReport probing;
};

void translate(const EvaluateOptions& o, const train::LoadedModel& loaded, const TestSet& set,
               Evaluation& result) {
  SentenceProgress progress("translated", static_cast<std::int64_t>(set.source.size()));
  const auto translated = [&](std::int64_t n) { progress.add(n); };
  std::int64_t cropped = 0;
  if (set.annotated.pairs.empty()) {
    const train::Translations translations = train::translate_lines(
        *loaded.model, loaded.pipeline, loaded.config, set.source, o.threads, translated);
    cropped = translations.cropped;
    result.translations = translations.lines(loaded.pipeline);
    if (!o.sentences.empty())
      result.sentences = scored_sentences(loaded, annotated_split_of(set), result.translations, o.threads);
  } else {
    train::ProbedText text = train::probe(*loaded.model, loaded.pipeline, loaded.config, set.annotated.pairs,
                                          o.threads, translated);
    cropped = text.cropped;
    result.sentences = std::move(text.sentences);
    for (const train::ProbedSentence& sentence : result.sentences)
      result.translations.push_back(sentence.translation);
    result.probing = train::probing_report(set.annotated.pairs, result.sentences,
                                           train::metric_options(loaded.config.evaluation), o.threads);
  }
  progress.end();
  warn_cropped(cropped, loaded.config);
}

Evaluation evaluate(const EvaluateOptions& o, const train::LoadedModel& loaded, const TestSet& set) {
  const std::vector<std::string> of_text = text_metrics(), of_loss = model_metrics();
  Evaluation result;
  Scores of_model;
  if (any_of(o, of_loss)) of_model = model_scores(o, loaded, set);
  if (any_of(o, of_text) || !o.output.empty() || !o.sentences.empty() || !set.annotated.pairs.empty())
    translate(o, loaded, set, result);
  for (const std::string& metric : o.metrics) {
    if (contains(of_text, metric))
      result.scores.emplace_back(metric, metrics::corpus(metric, result.translations, set.references,
                                                         train::metric_options(loaded.config.evaluation)));
    for (const auto& score : of_model)
      if (score.first == metric) result.scores.push_back(score);
  }
  return result;
}

std::string report_json(const std::vector<TestSet>& sets, const std::vector<Evaluation>& evaluations) {
  nlohmann::ordered_json report;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    nlohmann::ordered_json object = scores_object(evaluations[i].scores);
    if (!sets[i].annotated.pairs.empty()) object.update(probing_json(evaluations[i].probing));
    if (sets.size() == 1) return object.dump() + '\n';
    report["splits"][sets[i].name] = std::move(object);
  }
  return report.dump() + '\n';
}

std::string report_table(const std::vector<TestSet>& sets, const std::vector<Evaluation>& evaluations) {
  std::string scores = sets.size() == 1 ? scores_table(evaluations.front().scores) : "";
  if (sets.front().annotated.pairs.empty()) return scores;
  std::vector<std::pair<std::string, train::ProbingReport>> rows;
  for (std::size_t i = 0; i < sets.size(); ++i) rows.emplace_back(sets[i].name, evaluations[i].probing);
  return scores + (scores.empty() ? "" : "\n") + probing_table(rows);
}

void write_texts(const EvaluateOptions& o, const std::vector<TestSet>& sets,
                 const std::vector<Evaluation>& evaluations) {
  if (!o.output.empty()) {
    std::string text;
    for (const std::string& line : evaluations.front().translations) text += line + '\n';
    write_output(o.output, text);
  }
  if (!o.sentences.empty()) {
    std::string text;
    for (std::size_t i = 0; i < sets.size(); ++i)
      text += sentences_jsonl(annotated_split_of(sets[i]), evaluations[i].sentences);
    write_output(o.sentences, text);
  }
}

void check_metrics(const EvaluateOptions& o) {
  std::vector<std::string> known = text_metrics();
  for (std::string& metric : model_metrics()) known.push_back(std::move(metric));
  for (const std::string& metric : o.metrics)
    require(contains(known, metric), "--metrics: \"", metric, "\", expected some of ",
            fmt::format("{}", fmt::join(known, ", ")));
}

int run_evaluate(const EvaluateOptions& o) {
  check_metrics(o);
  const train::LoadedModel loaded = load(o, settings(o));
  const std::vector<TestSet> sets = test_sets(o, loaded.config);
  std::size_t total = 0;
  for (const TestSet& set : sets) total += set.source.size();
  complain(concat("evaluating ", loaded.path, " (step ", loaded.step, ") on ", total, " sentences"));
  std::vector<Evaluation> evaluations;
  for (const TestSet& set : sets) evaluations.push_back(evaluate(o, loaded, set));
  write_texts(o, sets, evaluations);
  write_output("", o.json ? report_json(sets, evaluations) : report_table(sets, evaluations));
  return 0;
}

}  // namespace

Command add_evaluate(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("evaluate", "Translate a test set and compare it with its references");
  auto o = std::make_shared<EvaluateOptions>();
  add_model(*command, *o);
  CLI::Option* split =
      command
          ->add_option(
              "--split", o->split,
              "which part of the configured data: train, valid or test; of the toy language "
              "(data.task: grammar) also any other of data grammar's splits, and all: test, a split for "
              "each phenomenon, and length, depth, composition and attractors")
          ->type_name("NAME")
          ->capture_default_str();
  CLI::Option* source =
      command->add_option("--source", o->source, "text file, plain or gzip, instead of a split")
          ->type_name("FILE")
          ->excludes(split);
  CLI::Option* target =
      command
          ->add_option("--target", o->targets, "its references, line by line; the loss is that of the first")
          ->type_name("FILE")
          ->allow_extra_args(false)
          ->needs(source);
  source->needs(target);
  command
      ->add_option(
          "--metrics", o->metrics,
          fmt::format("some of {} of the translations, and {} of the model with the reference as its "
                      "input (loss: nats per target token; token_accuracy: percent of tokens that it "
                      "finds most probable, not the metrics command's)",
                      fmt::join(text_metrics(), ", "), fmt::join(model_metrics(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  command->add_flag("--json", o->json, "one JSON object with scores in full precision and signatures");
  add_limit(*command, o->limit)->excludes(source);
  command
      ->add_option(
          "--sentences", o->sentences,
          "write one JSON object a sentence here: translation, log-probability of the target and, of the "
          "toy language, its probes and their log-probability margins")
      ->type_name("FILE")
      ->excludes(source);
  command->add_option("--output", o->output, "write the translations here")->type_name("FILE");
  add_decoding(*command, *o);
  return {command, [o] { return run_evaluate(*o); }};
}

}  // namespace polyhead::tools
