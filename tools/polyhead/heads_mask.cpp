#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "files.h"
#include "heads_lab.h"
#include "polyhead/heads/head_set.h"
#include "polyhead/heads/masking.h"

namespace polyhead::tools {
namespace {

using Json = nlohmann::ordered_json;
using heads::Head;

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

}  // namespace

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

}  // namespace polyhead::tools
