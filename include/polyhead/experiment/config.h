#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polyhead/config/settings.h"

/// Experiments: one configuration trained again and again, with some of its settings and its seed changed.
namespace polyhead::experiment {

/// What a model of a grid point is changed to, so that one thing at a time differs between points. h and d_model are the
/// point's; "the baseline" is the point that it is compared with (ExperimentConfig::baseline); a layer's head_dim is that
/// of queries, keys and values. Parameters are matched through d_ff, to the nearest integer, with what the model of the
/// same point has under `partition`.
enum class Control {
  /// The point as it is.
  none,
  /// head_dim = d_model / h: the heads share the features among them (Vaswani et al. 2017).
  partition,
  /// Every head has the same head_dim, whatever h: ExperimentConfig::head_dim, else that of the baseline under
  /// `partition`. More heads then mean wider attention, so d_ff gives way: parameters are matched.
  fixed_head_dim,
  /// head_dim alone: that of the point under `partition`, but always the baseline's number of heads and all else as it is
  /// there. Parameters differ.
  head_dim,
  /// The h heads of a layer one after the other instead of side by side (Liu, Liu & Han 2021, arXiv:2106.09650): h times
  /// as many encoder and decoder layers, each of one head of d_model / h features; parameters are matched.
  depth_for_heads,
  /// The point as it is, at a learning rate of its own: of learning_rate_factors times its rate, the one with the best
  /// `training.best_metric` in validation at the first seed. Every point has the same number of trials.
  learning_rate_search
};
config::EnumNames<Control> enum_names(Control);
/// "partition"
std::string name(Control control);

/// A configuration key and the values it takes.
struct Axis {
  std::string key;
  std::vector<config::Node> values;
};
struct Grid {
  std::vector<Axis> axes;
};
/// A value for each of some keys.
struct Point {
  std::vector<config::Setting> settings;
  const config::Node* find(std::string_view key) const;
};
/// "model.heads 8, model.d_ff 256"
std::string text(const Point& point);

/// A configuration: a path, a mapping, or null for the program's default.
struct Base {
  config::Node node;
};

/// The differences in metrics, in their units, that are still called none.
struct Margins {
  std::vector<std::pair<std::string, double>> of;
  std::optional<double> find(std::string_view metric) const;
};

/// What is in files, by their paths: 16 hexadecimal digits each.
struct Digests {
  std::map<std::string, std::string> of;
};

/// Section `evaluation` of an experiment.
struct EvaluationPlan {
  std::vector<std::string> splits{"test"};
  std::vector<std::string> metrics{"exact_match", "chrf", "loss"};
  std::optional<int> limit;
  Margins equivalence = {};

  template <class Visitor>
  void fields(Visitor& v) {
    v("splits", splits, "what polyhead evaluate --split takes; all stands for all that it stands for there");
    v("metrics", metrics,
      "what polyhead evaluate --metrics takes and, of the toy language, slot_accuracy and "
      "contrastive_accuracy",
      config::not_empty());
    v("limit", limit, "most sentences of a split; null: all", config::at_least(1));
    v("equivalence", equivalence,
      "some of the metrics with a margin each, in the metric's unit: differences from the baseline are "
      "tested "
      "for being inside of it");
  }
  void validate(config::Problems& problems) const;
};

/// An experiment file.
struct ExperimentConfig {
  std::string name = "experiment";
  Base base;
  Grid grid;
  std::vector<std::uint64_t> seeds{1, 2, 3, 4, 5};
  std::vector<Control> controls{Control::none};
  std::optional<int> head_dim;
  std::vector<double> learning_rate_factors{0.25, 0.5, 1, 2, 4};
  EvaluationPlan evaluation;
  Point baseline;
  Digests digests;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "of the experiment: its folder is runs/NAME where --out does not say otherwise",
      config::not_empty());
    v("base", base, "the configuration that cells differ from: a path from this file's folder, or a mapping");
    v("grid", grid, "configuration keys and the values they take, every combination of them");
    v("seeds", seeds, "each trains every combination once", config::not_empty());
    v("controls", controls, "what is changed with the grid's values");
    v("head_dim", head_dim, "of fixed_head_dim; null: that of the baseline's partition", config::at_least(1));
    v("learning_rate_factors", learning_rate_factors, "of learning_rate_search, each one a trial",
      config::not_empty(), config::above(0));
    v("evaluation", evaluation, "what is measured");
    v("baseline", baseline, "the grid's values that others are compared with");
    v("digests", digests,
      "of data files, by path: the program writes them beside results, and takes them for files that are "
      "gone");
  }
  void validate(config::Problems& problems) const;
  bool has(Control control) const;
};

/// An experiment file with the base it names.
struct Experiment {
  ExperimentConfig config;
  config::Node tree;  ///< of the file
  config::Node base;  ///< of the configuration, overridden
};

/// Reads an experiment. `overrides` (key.path=value) apply to the base, which is `default_base` where the file names none.
/// Throws one Error (usage) that tells everything that is wrong in the files, a line for each.
Experiment load_experiment(const std::string& path, std::span<const std::string> overrides,
                           std::string_view default_base);
/// The experiment as YAML that load_experiment() reads, with the base in it.
std::string dump(const Experiment& experiment);

}  // namespace polyhead::experiment

namespace polyhead::config {

template <>
struct Codec<experiment::Base> {
  static std::string type() { return "a path, a mapping or null"; }
  static experiment::Base read(const Node& node);
  static std::string text(const experiment::Base& base) { return flow_text(base.node); }
};
template <>
struct Codec<experiment::Grid> {
  static std::string type() { return "a mapping of configuration keys to lists of values"; }
  static experiment::Grid read(const Node& node);
  static std::string text(const experiment::Grid& grid);
};
template <>
struct Codec<experiment::Margins> {
  static std::string type() { return "a mapping of metrics to numbers above 0"; }
  static experiment::Margins read(const Node& node);
  static std::string text(const experiment::Margins& margins);
};
template <>
struct Codec<experiment::Digests> {
  static std::string type() { return "a mapping of paths to texts"; }
  static experiment::Digests read(const Node& node);
  static std::string text(const experiment::Digests& digests);
};
template <>
struct Codec<experiment::Point> {
  static std::string type() { return "a mapping of keys of the grid to one of their values"; }
  static experiment::Point read(const Node& node);
  static std::string text(const experiment::Point& point);
};

}  // namespace polyhead::config
