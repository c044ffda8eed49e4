#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "files.h"
#include "heads_lab.h"
#include "polyhead/core/error.h"
#include "polyhead/core/file.h"
#include "polyhead/heads/head_set.h"
#include "polyhead/heads/masking.h"
#include "polyhead/heads/pruning.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

using Json = nlohmann::ordered_json;
using heads::Head;

struct CurveOptions : MeasureOptions {
  std::vector<std::string> orders{"importance", "leave_one_out", "random"},
      scopes{"all", "encoder", "decoder", "cross"}, metrics{"loss"};
  int draws = 3;
  std::uint64_t seed = 1;
};

struct Curve {
  std::string scope, order;
  std::optional<int> draw;
  std::vector<Head> removed;
  std::vector<std::vector<heads::Figure>> points;  ///< after 0, 1, ... of them
};

std::vector<std::string> order_names() {
  std::vector<std::string> names;
  for (const auto& [name, column] : figure_columns()) names.emplace_back(name);
  names.insert(names.end(), {"random", "greedy"});
  return names;
}

/// The orders of one scope, given how much each of its heads matters.
std::vector<Curve> orders_of(const CurveOptions& o, const std::string& scope,
                             const heads::HeadFigures& figures,
                             const std::function<double(const std::vector<Head>&)>& loss) {
  std::vector<Head> in_scope;
  for (const Head& head : figures.heads)
    if (scope == "all" || scope == nn::name(head.site.kind)) in_scope.push_back(head);
  std::vector<Curve> curves;
  for (const std::string& order : o.orders) {
    if (order == "random") {
      for (int draw = 0; draw < o.draws; ++draw)
        curves.push_back({scope, order, draw, heads::random_order(in_scope, o.seed, draw), {}});
    } else if (order == "greedy") {
      curves.push_back({scope, order, {}, heads::greedy_order(in_scope, loss), {}});
    } else {
      const auto column = std::find_if(figure_columns().begin(), figure_columns().end(),
                                       [&](const FigureColumn& c) { return c.first == order; });
      std::vector<double> values;
      for (std::size_t h = 0; h < figures.heads.size(); ++h)
        if (scope == "all" || scope == nn::name(figures.heads[h].site.kind))
          values.push_back((figures.*column->second)[h]);
      curves.push_back({scope, order, {}, heads::ascending(in_scope, values), {}});
    }
  }
  return curves;
}

bool wanted(const CurveOptions& o, const heads::Figure& figure) {
  return !figure.phenomenon && std::find(o.metrics.begin(), o.metrics.end(), figure.name) != o.metrics.end();
}

std::string curve_json(const CurveOptions& o, Json report, const std::vector<Curve>& curves) {
  report["metrics"] = o.metrics;
  report["curves"] = Json::array();
  for (const Curve& curve : curves) {
    Json points = Json::array();
    for (std::size_t removed = 0; removed < curve.points.size(); ++removed) {
      Json point{{"removed", removed}, {"head", nullptr}};
      if (removed > 0) point["head"] = heads::name(curve.removed[removed - 1]);
      for (const heads::Figure& figure : curve.points[removed])
        if (wanted(o, figure)) point[figure.name] = figure.statistics.score();
      points.push_back(std::move(point));
    }
    report["curves"].push_back({{"scope", curve.scope},
                                {"order", curve.order},
                                {"draw", curve.draw ? Json(*curve.draw) : Json(nullptr)},
                                {"points", std::move(points)}});
  }
  return report.dump() + '\n';
}

std::string curve_table(const CurveOptions& o, const std::vector<Curve>& curves) {
  std::string table;
  for (const Curve& curve : curves) {
    table += fmt::format("{}{}, order {}{}\n{:>7}  {:14}", table.empty() ? "" : "\n", curve.scope,
                         curve.order, curve.draw ? fmt::format(" {}", *curve.draw) : "", "removed", "last");
    for (const heads::Figure& figure : curve.points.front())
      if (wanted(o, figure)) table += fmt::format("  {:>12}", figure.name);
    table += '\n';
    for (std::size_t removed = 0; removed < curve.points.size(); ++removed) {
      table +=
          fmt::format("{:7}  {:14}", removed, removed > 0 ? heads::name(curve.removed[removed - 1]) : "");
      for (const heads::Figure& figure : curve.points[removed])
        if (wanted(o, figure))
          table += fmt::format("  {:>{}.4f}", figure.statistics.score(),
                               std::max<std::size_t>(12, figure.name.size()));
      table += '\n';
    }
  }
  return table;
}

int run_curve(const CurveOptions& o) {
  const train::LoadedModel loaded = load(o, {"decoding.*", "evaluation.*"});
  const heads::Text text = load_text(o, loaded);
  const std::vector<decode::TokenPair> ids = text.ids();
  const heads::HeadFigures figures = measure(o, loaded, text);
  require(!figures.heads.empty(), loaded.path, ": the model has no heads to remove");
  const heads::Masking masking(*loaded.model, heads::MaskMethod::zero);
  const auto loss = [&](const std::vector<Head>& masked) {
    return heads::loss(decode::score(*loaded.model, ids, o.threads, {}, masking.hook(masked)));
  };
  std::vector<Curve> curves;
  std::size_t total = 0;
  for (const std::string& scope : o.scopes)
    for (Curve& curve : orders_of(o, scope, figures, loss)) {
      total += (1 + curve.removed.size()) * text.pairs.size();
      curves.push_back(std::move(curve));
    }
  const bool translate = o.metrics != std::vector<std::string>{"loss"};
  SentenceProgress progress("read", static_cast<std::int64_t>(total));
  for (Curve& curve : curves)
    for (std::size_t removed = 0; removed <= curve.removed.size(); ++removed)
      curve.points.push_back(heads::evaluate(
          loaded, text, translate, o.threads,
          masking.hook({curve.removed.begin(), curve.removed.begin() + static_cast<std::ptrdiff_t>(removed)}),
          [&](std::int64_t n) { progress.add(n); }));
  progress.end();
  write_output("", o.json ? curve_json(o, header(o, loaded, text), curves) : curve_table(o, curves));
  return 0;
}

struct PruneOptions : ModelOptions {
  std::string heads, out, config;
  bool closed = false, json = false;
};

std::int64_t parameter_count(const train::Checkpoint& checkpoint) {
  std::int64_t sum = 0;
  for (const train::NamedArray& array : checkpoint.parameters) sum += array.shape.size();
  return sum;
}

/// Writes a configuration unless it is there, as a call leaves it that is killed before it has written its checkpoint.
void write_config(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  if (!fs::exists(fs::symlink_status(path))) return write_output(path, text);
  const std::vector<std::byte> there = read_file(path);
  const std::span<const std::byte> wanted = std::as_bytes(std::span(text));
  require<FileError>(std::equal(there.begin(), there.end(), wanted.begin(), wanted.end()), path,
                     ": exists already, and is not the configuration without these heads; remove it or give "
                     "another --config");
}

int run_prune(const PruneOptions& o) {
  require_new(o.out, "--out");
  require(o.config != o.out, "--config and --out are both ", o.out);
  const auto [path, before, damaged] = train::open_checkpoint(o.model);
  if (!damaged.empty()) complain(damaged);
  train::model_of(before);  // throws unless its arrays are those of its configuration
  const std::vector<Head> removed = o.closed
                                        ? heads::closed_heads(before, path)
                                        : heads::parse_heads(o.heads, train::config_of(before, path).model);
  const train::Checkpoint after = heads::prune(before, path, removed);
  if (!o.config.empty()) write_config(o.config, after.config);
  train::write_checkpoint(o.out, after);  // last: where it is, the command was at its end
  const nn::HeadCounts left = train::config_of(after, o.out).model.heads;
  const auto bytes = [](const std::string& file) { return std::filesystem::file_size(file); };
  Json report{{"checkpoint", path}, {"out", o.out}, {"removed", names_json(removed)}};
  for (const nn::AttentionKind kind : nn::attention_kinds)
    report["heads"][std::string(nn::name(kind))] = (*left.lists())[static_cast<std::size_t>(kind)];
  report["parameters"] = {{"before", parameter_count(before)}, {"after", parameter_count(after)}};
  report["bytes"] = {{"before", bytes(path)}, {"after", bytes(o.out)}};
  write_output("", o.json ? report.dump() + '\n'
                          : concat("wrote ", o.out, ": heads ", left, ", ", parameter_count(before), " -> ",
                                   parameter_count(after), " parameters\n"));
  return 0;
}

}  // namespace

Command add_curve(CLI::App& heads_command) {
  CLI::App* command = heads_command.add_subcommand(
      "curve", "Remove heads one by one, the least important first: what is left of the model at every step");
  auto o = std::make_shared<CurveOptions>();
  add_measuring(*command, *o);
  add_decoding(*command, *o);
  command
      ->add_option("--orders", o->orders,
                   "orders of removal: by a figure of heads importance, random, or greedy, which "
                   "takes heads² passes over the split")
      ->delimiter(',')
      ->check(CLI::IsMember(order_names()))
      ->capture_default_str();
  command
      ->add_option("--scopes", o->scopes, "heads of which kinds of attention: all, encoder, decoder, cross")
      ->delimiter(',')
      ->check(CLI::IsMember({"all", "encoder", "decoder", "cross"}))
      ->capture_default_str();
  command
      ->add_option("--metrics", o->metrics,
                   "loss, bleu, chrf, exact_match; of the toy language also slot_accuracy, "
                   "contrastive_accuracy")
      ->delimiter(',')
      ->check(CLI::IsMember({"loss", "bleu", "chrf", "exact_match", "slot_accuracy", "contrastive_accuracy"}))
      ->capture_default_str();
  command->add_option("--draws", o->draws, "random orders")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_seed(*command, o->seed, "of random orders");
  return {command, [o] { return run_curve(*o); }};
}

Command add_prune(CLI::App& heads_command) {
  CLI::App* command =
      heads_command.add_subcommand("prune",
                                   "Write a smaller checkpoint without some heads: it computes what the "
                                   "model does with them masked, and can be "
                                   "used, inspected and trained on as any other");
  auto o = std::make_shared<PruneOptions>();
  add_model(*command, *o);
  CLI::Option* heads =
      command->add_option("--heads", o->heads, "heads to remove: encoder.0.3,cross.1.0")->type_name("HEADS");
  command
      ->add_flag("--closed", o->closed,
                 "of a model with learned gates (training.head_gates): remove the heads whose gates are 0")
      ->excludes(heads);
  command->add_option("--out", o->out, "the checkpoint to write; it must not exist yet")
      ->required()
      ->type_name("CHECKPOINT");
  command
      ->add_option(
          "--config", o->config,
          "write its configuration here, to train the same shape; it must not exist yet, or be that already")
      ->type_name("FILE");
  command->add_flag("--json", o->json, "one JSON object");
  return {command, [o] { return run_prune(*o); }};
}

}  // namespace polyhead::tools
