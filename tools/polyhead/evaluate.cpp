#include <fmt/format.h>

#include <algorithm>

#include "commands.h"
#include "files.h"
#include "model.h"
#include "polyhead/core/version.h"
#include "polyhead/metrics/metrics.h"
#include "polyhead/train/validation.h"
#include "progress.h"
#include "report.h"

namespace polyhead::tools {
namespace {

struct Options : ModelOptions {
  std::string split, source, output;
  std::vector<std::string> targets, metrics{"bleu", "chrf", "exact_match", "loss"};
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

bool any_of(const Options& o, const std::vector<std::string>& names) {
  return std::any_of(o.metrics.begin(), o.metrics.end(),
                     [&](const std::string& m) { return contains(names, m); });
}

/// What --set may change: where a split comes from only when one is read.
std::vector<std::string> settings(const Options& o) {
  std::vector<std::string> result{"decoding.*", "evaluation.*", "data.max_length"};
  if (o.source.empty())
    for (std::string& key : split_settings()) result.push_back(std::move(key));
  return result;
}

/// Text to translate, and references of it.
struct TestSet {
  std::vector<std::string> source;
  std::vector<std::vector<std::string>> references;
};

TestSet test_set(const Options& o, const train::Config& config) {
  if (o.source.empty()) {
    data::ParallelText text = load_split(o.split, config);
    return {std::move(text.source), {std::move(text.target)}};
  }
  TestSet set{read_input(o.source).lines, {}};
  for (const std::string& path : o.targets)
    set.references.push_back(read_beside(path, o.source, set.source.size()));
  return set;
}

metrics::Score model_score(const std::string& metric, const train::Figures& figures,
                           const data::ParallelCorpus& corpus) {
  const auto kind = config::Codec<train::Metric>::read({.kind = config::Node::Kind::scalar, .text = metric});
  const char* unit = metric == "loss" ? "nats|" : metric == "token_accuracy" ? "percent|" : "";
  return {figures.at(kind),
          fmt::format("{}per:token|tok:vocabulary|eos:yes|smooth:no|version:polyhead-{}", unit, version),
          {{"pairs", corpus.size()}, {"target_tokens", static_cast<double>(corpus.target_tokens())}}};
}

Scores model_scores(const Options& o, const train::LoadedModel& loaded, const TestSet& set) {
  const data::ParallelText text{o.source.empty() ? o.split : o.source, set.source, set.references.front()};
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

std::vector<std::string> translate(const Options& o, const train::LoadedModel& loaded, const TestSet& set) {
  SentenceProgress progress("translated", static_cast<std::int64_t>(set.source.size()));
  const train::Translations translations =
      train::translate_lines(*loaded.model, loaded.pipeline, loaded.config, set.source, o.threads,
                             [&](std::int64_t n) { progress.add(n); });
  progress.end();
  warn_cropped(translations.cropped, loaded.config);
  std::vector<std::string> lines = translations.lines(loaded.pipeline);
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  if (!o.output.empty()) write_output(o.output, text);
  return lines;
}

int run(const Options& o) {
  const std::vector<std::string> of_text = text_metrics(), of_loss = model_metrics();
  std::vector<std::string> known = of_text;
  known.insert(known.end(), of_loss.begin(), of_loss.end());
  for (const std::string& metric : o.metrics)
    require(contains(known, metric), "--metrics: \"", metric, "\", expected some of ",
            fmt::format("{}", fmt::join(known, ", ")));
  const train::LoadedModel loaded = load(o, settings(o));
  const TestSet set = test_set(o, loaded.config);
  complain(
      concat("evaluating ", loaded.path, " (step ", loaded.step, ") on ", set.source.size(), " sentences"));
  Scores of_model;
  if (any_of(o, of_loss)) of_model = model_scores(o, loaded, set);
  std::vector<std::string> translations;
  if (any_of(o, of_text) || !o.output.empty()) translations = translate(o, loaded, set);
  Scores scores;
  for (const std::string& metric : o.metrics) {
    if (contains(of_text, metric))
      scores.emplace_back(metric, metrics::corpus(metric, translations, set.references,
                                                  train::metric_options(loaded.config.evaluation)));
    for (const auto& score : of_model)
      if (score.first == metric) scores.push_back(score);
  }
  write_output("", o.json ? scores_json(scores) : scores_table(scores));
  return 0;
}

}  // namespace

Command add_evaluate(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("evaluate", "Translate a test set and compare it with its references");
  auto o = std::make_shared<Options>();
  add_model(*command, *o);
  CLI::Option* split = add_split(*command, o->split);
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
  command->add_option("--output", o->output, "write the translations here")->type_name("FILE");
  add_decoding(*command, *o);
  return {command, [o] { return run(*o); }};
}

}  // namespace polyhead::tools
