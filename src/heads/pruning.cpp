#include "polyhead/heads/pruning.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "polyhead/config/yaml.h"
#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"
#include "polyhead/heads/head_set.h"
#include "polyhead/ops/hard_concrete.h"
#include "polyhead/train/head_gates.h"
#include "polyhead/train/model_file.h"

namespace polyhead::heads {
namespace {

bool contains(std::span<const Head> heads, const Head& head) {
  return std::find(heads.begin(), heads.end(), head) != heads.end();
}

train::Config without(train::Config config, std::span<const Head> pruned) {
  nn::ModelConfig& model = config.model;
  nn::HeadCounts::Lists lists;
  for (const nn::AttentionKind kind : nn::attention_kinds)
    for (int layer = 0; layer < model.layers(kind); ++layer)
      lists[static_cast<std::size_t>(kind)].push_back(
          model.heads.at({kind, layer}) -
          static_cast<int>(std::count_if(pruned.begin(), pruned.end(), [&](const Head& head) {
            return head.site == nn::AttentionSite{kind, layer};
          })));
  const int key_width = model.key_width(), value_width = model.value_width();
  model.head_dim = key_width;
  if (value_width != key_width) model.value_dim = value_width;
  model.heads = std::move(lists);
  config.training.head_gates = {};
  return config;
}

/// The features of a layer's heads that stay: which of `heads` blocks of `dim`.
std::vector<std::int64_t> kept_features(const nn::AttentionSite& site, int heads, int dim,
                                        std::span<const Head> pruned) {
  std::vector<std::int64_t> kept;
  for (int head = 0; head < heads; ++head)
    for (int f = 0; f < dim && !contains(pruned, {site, head}); ++f)
      kept.push_back(std::int64_t{head} * dim + f);
  return kept;
}

/// Arrays that a checkpoint's storage will hold, cut to the features that stay.
class Slices {
 public:
  /// Rows of a matrix or of a bias.
  void rows(const train::NamedArray& array, std::span<const std::int64_t> kept) {
    const std::int64_t columns = array.shape.rank() == 2 ? array.shape[1] : 1;
    Part part{array.path, array.shape, {}};
    for (const std::int64_t row : kept)
      for (std::int64_t c = 0; c < columns; ++c)
        part.values.push_back(array.values[static_cast<std::size_t>(row * columns + c)]);
    const auto count = static_cast<std::int64_t>(kept.size());
    part.shape = array.shape.rank() == 2 ? Shape{count, columns} : Shape{count};
    add(std::move(part));
  }
  /// Columns of a matrix, times the gates of the heads that they belong to.
  void columns(const train::NamedArray& array, std::span<const std::int64_t> kept,
               std::span<const double> gates) {
    const std::int64_t dim = array.shape[1] / static_cast<std::int64_t>(gates.size());
    Part part{array.path, {array.shape[0], static_cast<std::int64_t>(kept.size())}, {}};
    for (std::int64_t row = 0; row < array.shape[0]; ++row)
      for (const std::int64_t c : kept)
        part.values.push_back(array.values[static_cast<std::size_t>(row * array.shape[1] + c)] *
                              static_cast<float>(gates[static_cast<std::size_t>(c / dim)]));
    add(std::move(part));
  }
  void whole(const train::NamedArray& array) {
    add({array.path, array.shape, {array.values.begin(), array.values.end()}});
  }

  void move_to(train::Checkpoint& checkpoint) const {
    std::size_t total = 0;
    for (const Part& part : parts_) total += part.values.size();
    checkpoint.storage = std::make_unique_for_overwrite<float[]>(total);
    float* next = checkpoint.storage.get();
    for (const Part& part : parts_) {
      std::copy(part.values.begin(), part.values.end(), next);
      checkpoint.parameters.push_back({part.path, part.shape, {next, part.values.size()}});
      next += part.values.size();
    }
  }

 private:
  struct Part {
    std::string path;
    Shape shape;
    std::vector<float> values;
  };
  /// A layer without heads has no such parameters.
  void add(Part part) {
    if (!part.values.empty()) parts_.push_back(std::move(part));
  }
  std::vector<Part> parts_;
};

std::span<const train::NamedArray> weights(const train::Checkpoint& checkpoint) {
  return checkpoint.ema.empty() ? checkpoint.parameters : checkpoint.ema;
}

/// The learned gates of an attention outside of training; all 1 where there are none.
std::vector<double> gates_of(const train::Checkpoint& checkpoint, const nn::AttentionSite& site, int heads) {
  std::vector<double> gates(static_cast<std::size_t>(heads), 1);
  if (const train::NamedArray* array = train::find(weights(checkpoint), train::gates_path(site)))
    std::transform(array->values.begin(), array->values.end(), gates.begin(),
                   [](float x) { return ops::HardConcrete::value(double{x}); });
  return gates;
}

/// Cuts the parameters of a checkpoint's attentions.
class Slicing {
 public:
  Slicing(const train::Checkpoint& checkpoint, const nn::ModelConfig& model, std::span<const Head> pruned)
      : checkpoint_(checkpoint), model_(model), pruned_(pruned) {
    for (const nn::AttentionKind kind : nn::attention_kinds)
      for (int layer = 0; layer < model.layers(kind); ++layer) sites_.push_back({kind, layer});
  }

  void slice(const train::NamedArray& array) {
    const auto site = std::find_if(sites_.begin(), sites_.end(), [&](const nn::AttentionSite& s) {
      return array.path.starts_with(path(s) + "/");
    });
    if (site == sites_.end())
      slices_.whole(array);
    else
      slice(array, std::string_view(array.path).substr(path(*site).size() + 1), *site);
  }
  void move_to(train::Checkpoint& result) const { slices_.move_to(result); }

 private:
  void slice(const train::NamedArray& array, std::string_view name, const nn::AttentionSite& site) {
    const int heads = model_.heads.at(site);
    const auto kept = [&](int dim) { return kept_features(site, heads, dim, pruned_); };
    if (name.starts_with("query/") || name.starts_with("key/"))
      slices_.rows(array, kept(model_.key_width()));
    else if (name.starts_with("value/"))
      slices_.rows(array, kept(model_.value_width()));
    else if (name == "output/weight")
      slices_.columns(array, kept(model_.value_width()), gates_of(checkpoint_, site, heads));
    else if (name != "gates")
      slices_.whole(array);
  }

  const train::Checkpoint& checkpoint_;
  const nn::ModelConfig& model_;
  std::span<const Head> pruned_;
  std::vector<nn::AttentionSite> sites_;
  Slices slices_;
};

}  // namespace

train::Checkpoint prune(const train::Checkpoint& checkpoint, const std::string& path,
                        std::span<const Head> pruned) {
  const train::Config config = train::config_of(checkpoint, path);
  Slicing slicing(checkpoint, config.model, pruned);
  for (const train::NamedArray& array : weights(checkpoint)) slicing.slice(array);
  train::Checkpoint result;
  slicing.move_to(result);
  result.step = checkpoint.step;
  result.epoch = checkpoint.epoch;
  result.vocabulary = checkpoint.vocabulary;
  result.config = config::dump(without(config, pruned));
  nlohmann::json state = nlohmann::json::parse(checkpoint.state, nullptr, false);
  if (!state.is_object()) state = nlohmann::json::object();
  nlohmann::json& names = state["pruned"];
  if (!names.is_array()) names = nlohmann::json::array();
  for (const Head& head : pruned) names.push_back(heads::name(head));
  result.state = state.dump();
  return result;
}

std::vector<Head> closed_heads(const train::Checkpoint& checkpoint, const std::string& path) {
  const nn::ModelConfig model = train::config_of(checkpoint, path).model;
  std::vector<Head> closed;
  bool any = false;
  for (const Head& head : all_heads(model)) {
    any = any || train::find(weights(checkpoint), train::gates_path(head.site));
    if (gates_of(checkpoint, head.site, model.heads.at(head.site))[static_cast<std::size_t>(head.head)] == 0)
      closed.push_back(head);
  }
  require(any, path, ": has no learned gates of heads, expected a model trained with training.head_gates");
  return closed;
}

std::vector<Head> ascending(std::span<const Head> heads, std::span<const double> figures) {
  std::vector<std::size_t> order(heads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return figures[a] < figures[b]; });
  std::vector<Head> result;
  for (const std::size_t i : order) result.push_back(heads[i]);
  return result;
}

std::vector<Head> random_order(std::span<const Head> heads, std::uint64_t seed, int draw) {
  std::vector<Head> result(heads.begin(), heads.end());
  RandomStream random(RngKey{seed}.fold("pruning").fold(static_cast<std::uint64_t>(draw)));
  shuffle(result, random);
  return result;
}

std::vector<Head> greedy_order(std::span<const Head> heads,
                               const std::function<double(const std::vector<Head>&)>& loss) {
  std::vector<Head> left(heads.begin(), heads.end()), removed;
  while (!left.empty()) {
    std::vector<double> losses;
    for (const Head& head : left) {
      removed.push_back(head);
      losses.push_back(loss(removed));
      removed.pop_back();
    }
    const auto best = std::min_element(losses.begin(), losses.end()) - losses.begin();
    removed.push_back(left[static_cast<std::size_t>(best)]);
    left.erase(left.begin() + best);
  }
  return removed;
}

}  // namespace polyhead::heads
