#include "heads_lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "files.h"
#include "phenomena.h"
#include "polyhead/heads/evaluation.h"
#include "polyhead/heads/head_set.h"
#include "polyhead/heads/importance.h"
#include "polyhead/heads/masking.h"
#include "polyhead/metrics/statistics.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

using Json = nlohmann::ordered_json;
using heads::Head;

std::vector<data::Pair> plain_pairs(const MeasureOptions& o, const train::Config& config) {
  require(o.split == "train" || o.split == "valid" || o.split == "test", "--split: \"", o.split,
          "\", but data.task ", config.data.task, " has train, valid, test only");
  if (config.data.task != "files") {
    std::vector<data::Pair> pairs;
    data::each_pair(config.data, split_of(o.split), config.seed, [&](data::Pair&& pair) {
      if (o.limit == 0 || std::cmp_less(pairs.size(), o.limit)) pairs.push_back(std::move(pair));
    });
    return pairs;
  }
  const data::ParallelText text = load_split(o.split, config);
  std::vector<data::Pair> pairs(text.source.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].source = {text.source[i]};
    pairs[i].target = {text.target[i]};
  }
  return pairs;
}

/// Calls work(progress) and shows how far it is, over `total` sentences read again and again.
template <class Work>
auto with_progress(const char* done, std::size_t total, const Work& work) {
  SentenceProgress progress(done, static_cast<std::int64_t>(total));
  auto result = work([&](std::int64_t n) { progress.add(n); });
  progress.end();
  return result;
}

}  // namespace

void add_measuring(CLI::App& command, MeasureOptions& o) {
  add_model(command, o);
  command
      .add_option(
          "--split", o.split,
          "which part of the configured data: train, valid or test; of the toy language also any other of "
          "data grammar's splits")
      ->type_name("NAME")
      ->capture_default_str();
  add_limit(command, o.limit);
  command.add_flag("--json", o.json, "one JSON object in full precision");
}

heads::Text load_text(const MeasureOptions& o, const train::LoadedModel& loaded) {
  std::vector<data::Pair> pairs;
  if (loaded.config.data.task == "grammar") {
    const std::vector<std::string> splits = grammar_splits(o.split);
    require(splits.size() == 1, "--split: all is several splits, expected one");
    pairs = std::move(annotated_splits(splits, loaded.config, o.limit, o.threads).front().pairs);
  } else {
    pairs = plain_pairs(o, loaded.config);
  }
  if (o.limit > 0 && std::cmp_less(o.limit, pairs.size())) pairs.resize(static_cast<std::size_t>(o.limit));
  heads::Text text = heads::encode_text(std::move(pairs), loaded);
  if (text.left_out > 0)
    complain(concat(text.left_out, " pairs with a side that is empty or of more than ",
                    loaded.config.max_pieces(), " pieces, left out"));
  return text;
}

Json header(const MeasureOptions& o, const train::LoadedModel& loaded, const heads::Text& text) {
  return {{"checkpoint", loaded.path},
          {"step", loaded.step},
          {"split", o.split},
          {"sentences", text.pairs.size()}};
}

Json names_json(std::span<const Head> set) {
  Json names = Json::array();
  for (const Head& head : set) names.push_back(heads::name(head));
  return names;
}

const std::vector<FigureColumn>& figure_columns() {
  static const std::vector<FigureColumn> all{
      {"importance", &heads::HeadFigures::importance},
      {"importance_normalized", &heads::HeadFigures::importance_normalized},
      {"leave_one_out", &heads::HeadFigures::leave_one_out},
      {"confidence", &heads::HeadFigures::confidence},
      {"output_norm", &heads::HeadFigures::output_norm}};
  return all;
}

heads::HeadFigures measure(const MeasureOptions& o, const train::LoadedModel& loaded,
                           const heads::Text& text) {
  const std::size_t passes = 2 + heads::all_heads(loaded.config.model).size();
  return with_progress("read", text.pairs.size() * passes, [&](const auto& progress) {
    return heads::head_figures(*loaded.model, text.ids(), o.threads, progress);
  });
}

namespace {

struct MaskOptions : MeasureOptions {
  std::string method = "zero", sets_file;
  std::vector<std::string> sets;
  bool all_but_one = false;
  std::uint64_t seed = 1;
  int draws = 10000;
};

struct NamedSet {
  std::string name;
  std::vector<Head> heads;
};

std::vector<NamedSet> sets_of(const MaskOptions& o, const nn::ModelConfig& model) {
  std::vector<NamedSet> sets;
  for (const std::string& set : o.sets) sets.push_back({"", heads::parse_heads(set, model)});
  if (!o.sets_file.empty())
    for (std::vector<Head>& set : heads::load_head_sets(o.sets_file, model))
      sets.push_back({"", std::move(set)});
  for (NamedSet& set : sets) set.name = heads::names(set.heads);
  if (!sets.empty()) return sets;
  for (const Head& head : heads::all_heads(model)) {
    if (!o.all_but_one)
      sets.push_back({heads::name(head), {head}});
    else if (model.heads.at(head.site) > 1)
      sets.push_back({"all but " + heads::name(head), heads::others(head, model)});
  }
  require(!sets.empty(),
          "no heads to mask: ", o.all_but_one ? "no layer has more than one" : "the model has none");
  return sets;
}

heads::MaskMethod method_of(const std::string& text) {
  const auto& names = heads::mask_method_names;
  return static_cast<heads::MaskMethod>(std::find(names.begin(), names.end(), text) - names.begin());
}

Json change_json(const heads::Change& c) {
  return {{"score", c.score}, {"change", c.change}, {"p", c.p}, {"q", c.q}};
}

struct MaskReport {
  std::vector<NamedSet> sets;
  std::vector<heads::Figure> baseline;
  std::vector<std::vector<heads::Change>> changes;
};

std::string mask_json(const MaskOptions& o, Json report, const MaskReport& r) {
  report["method"] = o.method;
  report["seed"] = o.seed;
  report["draws"] = o.draws;
  for (const heads::Figure& figure : r.baseline) {
    const double score = figure.statistics.score();
    if (figure.phenomenon)
      report["baseline_phenomena"][std::string(data::name(*figure.phenomenon))][figure.name] = score;
    else
      report["baseline"][figure.name] = score;
  }
  report["sets"] = Json::array();
  for (std::size_t s = 0; s < r.sets.size(); ++s) {
    Json set{{"name", r.sets[s].name}, {"heads", names_json(r.sets[s].heads)}, {"figures", Json::object()}};
    for (std::size_t f = 0; f < r.baseline.size(); ++f) {
      const heads::Figure& figure = r.baseline[f];
      Json change = change_json(r.changes[s][f]);
      if (figure.phenomenon)
        set["phenomena"][std::string(data::name(*figure.phenomenon))][figure.name] = std::move(change);
      else
        set["figures"][figure.name] = std::move(change);
    }
    report["sets"].push_back(std::move(set));
  }
  return report.dump() + '\n';
}

std::string mask_table(const MaskReport& r) {
  constexpr std::size_t width = 32;
  const auto fit = [](const std::string& name) {
    return name.size() <= width ? name : name.substr(0, width - 3) + "...";
  };
  std::string table = fmt::format("{:{}}", "masked", width), first = fmt::format("{:{}}", "nothing", width);
  for (const heads::Figure& figure : r.baseline) {
    if (figure.phenomenon) continue;
    const std::size_t column = std::max<std::size_t>(10, figure.name.size());
    table += fmt::format("  {:>{}} ", figure.name, column);
    first += fmt::format("  {:>{}.4f} ", figure.statistics.score(), column);
  }
  table += '\n' + first + '\n';
  for (std::size_t s = 0; s < r.sets.size(); ++s) {
    table += fmt::format("{:{}}", fit(r.sets[s].name), width);
    for (std::size_t f = 0; f < r.baseline.size(); ++f) {
      if (r.baseline[f].phenomenon) continue;
      const heads::Change& c = r.changes[s][f];
      table += fmt::format("  {:>+{}.4f}{}", c.change, std::max<std::size_t>(10, r.baseline[f].name.size()),
                           c.q < 0.05 ? '*' : ' ');
    }
    table += '\n';
  }
  return table +
         "changes; * false discovery rate below 5% among the rows (approximate randomisation, "
         "Benjamini-Hochberg)\n";
}

int run_mask(const MaskOptions& o) {
  const train::LoadedModel loaded = load(o, {"decoding.*", "evaluation.*"});
  MaskReport report{.sets = sets_of(o, loaded.config.model), .baseline = {}, .changes = {}};
  const heads::Text text = load_text(o, loaded);
  const std::vector<decode::TokenPair> ids = text.ids();
  const heads::MaskMethod method = method_of(o.method);
  std::optional<heads::HeadOutputs> outputs;
  if (method == heads::MaskMethod::mean || method == heads::MaskMethod::resample)
    outputs.emplace(*loaded.model, ids, o.threads);
  const heads::Masking masking(*loaded.model, method, outputs ? &*outputs : nullptr, o.seed);
  const auto changed =
      with_progress("translated", text.pairs.size() * (1 + report.sets.size()), [&](const auto& progress) {
        report.baseline = heads::evaluate(loaded, text, true, o.threads, {}, progress);
        std::vector<std::vector<heads::Figure>> figures;
        for (const NamedSet& set : report.sets)
          figures.push_back(
              heads::evaluate(loaded, text, true, o.threads, masking.hook(set.heads), progress));
        return figures;
      });
  report.changes = heads::compare(report.baseline, changed, {o.seed, o.draws, o.threads});
  write_output("", o.json ? mask_json(o, header(o, loaded, text), report) : mask_table(report));
  return 0;
}

Command add_mask(CLI::App& heads_command) {
  CLI::App* command = heads_command.add_subcommand("mask",
                                                   "Run the model without some heads: what becomes of loss, "
                                                   "translations and the toy language's phenomena");
  auto o = std::make_shared<MaskOptions>();
  add_measuring(*command, *o);
  add_decoding(*command, *o);
  command
      ->add_option("--method", o->method,
                   "what a masked head gives: zero, its mean output, that of another sentence, "
                   "or its values under uniform attention")
      ->check(CLI::IsMember({"zero", "mean", "resample", "uniform"}))
      ->capture_default_str();
  CLI::Option* sets = command
                          ->add_option("--heads", o->sets,
                                       "heads to mask together: encoder.0.3,cross.1.0; may be "
                                       "given again for another set. By default each head in turn")
                          ->type_name("HEADS")
                          ->allow_extra_args(false);
  CLI::Option* file =
      command->add_option("--sets", o->sets_file, "YAML file, sets: a list of such sets")->type_name("FILE");
  command
      ->add_flag("--all-but-one", o->all_but_one,
                 "each head in turn as the only one left of its layer and kind")
      ->excludes(sets)
      ->excludes(file);
  add_seed(*command, o->seed, "of resampling and of significance tests");
  command->add_option("--draws", o->draws, "of approximate randomisation")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  return {command, [o] { return run_mask(*o); }};
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

struct Correlation {
  const char *a, *b;
  metrics::RankCorrelation rank;
};

/// Of all pairs of figures, where there are heads enough.
std::vector<Correlation> correlations(const heads::HeadFigures& figures) {
  std::vector<Correlation> result;
  if (figures.heads.size() < 3) return result;
  for (std::size_t i = 0; i < figure_columns().size(); ++i)
    for (std::size_t j = i + 1; j < figure_columns().size(); ++j)
      result.push_back(
          {figure_columns()[i].first, figure_columns()[j].first,
           metrics::spearman(figures.*figure_columns()[i].second, figures.*figure_columns()[j].second)});
  return result;
}

std::string importance_json(Json report, const heads::HeadFigures& figures) {
  report["heads"] = Json::array();
  for (std::size_t h = 0; h < figures.heads.size(); ++h) {
    const Head& head = figures.heads[h];
    Json entry{{"kind", nn::name(head.site.kind)}, {"layer", head.site.layer}, {"head", head.head}};
    for (const auto& [name, column] : figure_columns()) entry[name] = (figures.*column)[h];
    report["heads"].push_back(std::move(entry));
  }
  report["rank_correlations"] = Json::array();
  for (const Correlation& c : correlations(figures))
    report["rank_correlations"].push_back(
        {{"a", c.a}, {"b", c.b}, {"rho", number_or_null(c.rank.rho)}, {"p", number_or_null(c.rank.p)}});
  return report.dump() + '\n';
}

std::string importance_table(const heads::HeadFigures& figures) {
  std::string table = fmt::format("{:14}", "head");
  for (const auto& [name, column] : figure_columns()) table += fmt::format("  {:>12}", name);
  table += '\n';
  for (std::size_t h = 0; h < figures.heads.size(); ++h) {
    table += fmt::format("{:14}", heads::name(figures.heads[h]));
    for (const auto& [name, column] : figure_columns())
      table += fmt::format("  {:>{}.5f}", (figures.*column)[h],
                           std::max<std::size_t>(12, std::string_view(name).size()));
    table += '\n';
  }
  table += "\nSpearman's rank correlation over all heads\n";
  for (const Correlation& c : correlations(figures))
    table += fmt::format("{:22} {:22} {:+.3f}  p {:.4f}\n", c.a, c.b, c.rank.rho, c.rank.p);
  return table;
}

int run_importance(const MeasureOptions& o) {
  const train::LoadedModel loaded = load(o, {});
  const heads::Text text = load_text(o, loaded);
  const heads::HeadFigures figures = measure(o, loaded, text);
  write_output("", o.json ? importance_json(header(o, loaded, text), figures) : importance_table(figures));
  return 0;
}

Command add_importance(CLI::App& heads_command) {
  CLI::App* command =
      heads_command.add_subcommand("importance",
                                   "How much each head matters: the loss's gradient in its gate, the loss "
                                   "without it, its confidence and the norm of "
                                   "its output, and how these agree");
  auto o = std::make_shared<MeasureOptions>();
  add_measuring(*command, *o);
  return {command, [o] { return run_importance(*o); }};
}

}  // namespace

std::vector<Command> add_heads_lab(CLI::App& heads_command) {
  return {add_mask(heads_command), add_importance(heads_command), add_curve(heads_command),
          add_prune(heads_command)};
}

}  // namespace polyhead::tools
