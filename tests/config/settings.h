#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "polyhead/config/yaml.h"

/// A configuration with a field of every kind, as the tests use it.
namespace settings {

namespace config = polyhead::config;

enum class Norm { pre, post, none };
inline config::EnumNames<Norm> enum_names(Norm) {
  return {{Norm::pre, "pre"}, {Norm::post, "post"}, {Norm::none, "no"}};
}

/// One integer, or one a layer.
struct Heads {
  std::vector<int> counts{4};
  bool list = false;
  bool operator==(const Heads&) const = default;
};

struct Model {
  int d_model = 128;
  Heads heads;
  std::optional<int> head_dim;
  Norm norm = Norm::post;
  double dropout = 0.1;
  bool bias = true;
  bool operator==(const Model&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("d_model", d_model, "features of a position", config::at_least(1));
    v("heads", heads, "attention heads", config::at_least(0));
    v("head_dim", head_dim, "features of a head", config::between(1, 1024));
    v("norm", norm, "where layers normalise");
    v("dropout", dropout, "share of features dropped", config::at_least(0), config::below(1));
    v("bias", bias, "whether projections add a bias");
  }
  void validate(config::Problems& problems) const {
    for (const int count : heads.counts)
      if (count > 0 && d_model % count != 0)
        problems.add("heads", count, " does not divide d_model ", d_model);
  }
};

struct Adam {
  std::vector<double> betas{0.9, 0.98};
  double eps = 1e-9;
  bool operator==(const Adam&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("betas", betas, "decay of the moments", config::above(0), config::below(1));
    v("eps", eps, "added to the denominator", config::above(0));
  }
};

struct Training {
  std::int64_t max_steps = 1000;
  Adam adam;
  std::vector<std::string> metrics{"loss"};
  std::vector<bool> flags;
  bool operator==(const Training&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("max_steps", max_steps, "updates at most", config::at_most(1000000));
    v("adam", adam, "the optimiser");
    v("metrics", metrics, "what to validate on", config::not_empty());
    v("flags", flags, "a|b");
  }
};

struct Run {
  std::string name = "run";
  std::uint64_t seed = 1;
  Model model;
  Training training;
  bool operator==(const Run&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "what the run is called", config::not_empty());
    v("seed", seed, "of everything random");
    v("model", model, "the network");
    v("training", training, "how it is trained");
  }
  void validate(config::Problems& problems) const {
    if (name == "root rule") problems.add("model.d_model", "not with this name");
  }
};

}  // namespace settings

template <>
struct polyhead::config::Codec<settings::Heads> {
  static std::string type() { return "an integer or a list of them"; }
  static settings::Heads read(const Node& node) {
    if (node.kind == Node::Kind::sequence) return {Codec<std::vector<int>>::read(node), true};
    if (node.kind != Node::Kind::scalar) unexpected(node, type());
    return {{Codec<int>::read(node)}, false};
  }
  static std::string text(const settings::Heads& heads) {
    return heads.list ? Codec<std::vector<int>>::text(heads.counts) : Codec<int>::text(heads.counts.at(0));
  }
  static bool satisfies(const settings::Heads& heads, const Constraint& constraint) {
    return config::satisfies(heads.counts, constraint);
  }
};

namespace settings {

inline Run parse(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return config::parse<Run>(text, "run.yaml", overrides);
}

/// The message with which parsing fails; "" when it does not.
inline std::string message(std::string_view text, const std::vector<std::string>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const polyhead::Error& error) {
    return error.status() == polyhead::Status::usage ? error.what() : "not a usage error";
  }
  return "";
}

}  // namespace settings
