#define EIGEN_DONT_PARALLELIZE  // the same bits on any threads

#include "polyhead/heads/output_figures.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "decode/batch.h"
#include "polyhead/core/error.h"

namespace polyhead::heads {
namespace {

using Matrix = Eigen::MatrixXd;

Matrix as_matrix(const Tensor& t) {
  Matrix result;
  dispatch(t.dtype, [&]<class T>() {
    using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    result = Eigen::Map<const Rows>(t.as<T>(), t.rows(), t.cols()).template cast<double>();
  });
  return result;
}

/// As written by add(): column by column.
Matrix as_matrix(const std::vector<double>& values, Eigen::Index n) {
  return Eigen::Map<const Matrix>(values.data(), n, n);
}

void add_to(std::vector<double>& sums, const double* values) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
}
void add_to(std::vector<double>& sums, const std::vector<double>& values) { add_to(sums, values.data()); }

}  // namespace

struct OutputStatistics::Site {
  nn::AttentionSite site;
  std::size_t first;  // of all heads
  Eigen::Index heads, dim;
  Matrix metric;  // W^Oᵀ W^O: o_a·o_b = y_aᵀ metric_ab y_b

  auto block(const Matrix& m, std::size_t a, std::size_t b) const {
    return m.block(static_cast<Eigen::Index>(a) * dim, static_cast<Eigen::Index>(b) * dim, dim, dim);
  }
  /// Σ of squares of W_a C_ab W_bᵀ, C the centred second moments.
  double squares(const Matrix& moments, std::size_t a, std::size_t b) const {
    const Matrix c = block(moments, a, b);
    return (c.transpose() * block(metric, a, a) * c * block(metric, b, b)).trace();
  }
};

OutputStatistics::OutputStatistics(const nn::Transformer& model, std::span<const Head> heads)
    : heads_(heads) {
  const nn::ParameterStore& store = model.parameters();
  for (std::size_t h = 0; h < heads.size(); ++h) {
    if (h > 0 && heads[h].site == heads[h - 1].site) continue;
    const Matrix weight = as_matrix(store.value(store.at(path(heads[h].site) + "/output/weight")));
    const auto count = std::count_if(heads.begin(), heads.end(),
                                     [&](const Head& head) { return head.site == heads[h].site; });
    sites_.push_back(std::make_shared<const Site>(
        Site{heads[h].site, h, count, weight.cols() / count, weight.transpose() * weight}));
    const auto n = static_cast<std::size_t>(count), width = static_cast<std::size_t>(weight.cols());
    sums_.push_back({0, 0, std::vector<double>(width), std::vector<double>(width * width),
                     std::vector<double>(n), std::vector<double>(n * n), std::vector<double>(n * n)});
  }
}

void OutputStatistics::add(const nn::AttentionSite& where, const Tensor& outputs) {
  const auto at = std::find_if(sites_.begin(), sites_.end(), [&](const auto& s) { return s->site == where; });
  const Site& site = **at;
  Sums& sums = sums_[static_cast<std::size_t>(at - sites_.begin())];
  const Matrix y = as_matrix(outputs);
  require(y.cols() == site.heads * site.dim, "heads' outputs have ", y.cols(), " features, expected ",
          site.heads * site.dim);
  sums.positions += static_cast<double>(y.rows());
  const Matrix mean = y.colwise().sum(), products = y.transpose() * y;
  add_to(sums.mean, mean.data());
  add_to(sums.products, products.data());

  const auto n = static_cast<std::size_t>(site.heads);
  std::vector<Eigen::VectorXd> dots(n * n);  // of each position
  Eigen::VectorXd total = Eigen::VectorXd::Zero(y.rows());
  for (std::size_t a = 0; a < n; ++a) {
    const auto columns = [&](std::size_t h) {
      return y.middleCols(static_cast<Eigen::Index>(h) * site.dim, site.dim);
    };
    for (std::size_t b = a; b < n; ++b) {
      dots[a * n + b] = (columns(a) * site.block(site.metric, a, b)).cwiseProduct(columns(b)).rowwise().sum();
      total += dots[a * n + b] * (a == b ? 1 : 2);
    }
  }
  for (Eigen::Index t = 0; t < y.rows(); ++t) {
    sums.total_norm += std::sqrt(std::max(0., total[t]));
    for (std::size_t a = 0; a < n; ++a) {
      const double square = std::max(0., dots[a * n + a][t]);
      sums.norms[a] += std::sqrt(square);
      for (std::size_t b = a + 1; b < n; ++b) {
        const double other = std::max(0., dots[b * n + b][t]);
        if (square == 0 || other == 0) continue;
        sums.cosines[a * n + b] += dots[a * n + b][t] / std::sqrt(square * other);
        ++sums.cosine_rows[a * n + b];
      }
    }
  }
}

void OutputStatistics::merge(const OutputStatistics& other) {
  for (std::size_t s = 0; s < sums_.size(); ++s) {
    Sums& a = sums_[s];
    const Sums& b = other.sums_[s];
    a.positions += b.positions;
    a.total_norm += b.total_norm;
    for (auto member : {&Sums::mean, &Sums::products, &Sums::norms, &Sums::cosines, &Sums::cosine_rows})
      add_to(a.*member, b.*member);
  }
}

OutputStatistics::Place OutputStatistics::place(std::size_t head) const {
  std::size_t site = 0;
  while (site + 1 < sites_.size() && sites_[site + 1]->first <= head) ++site;
  return {site, head - sites_[site]->first};
}

namespace {

/// Σ y yᵀ − (Σ y)(Σ y)ᵀ/n
Matrix centred(const std::vector<double>& products, const std::vector<double>& mean, double positions) {
  const auto width = static_cast<Eigen::Index>(mean.size());
  const Eigen::Map<const Eigen::VectorXd> sum(mean.data(), width);
  return as_matrix(products, width) - sum * sum.transpose() / positions;
}

/// Of the singular values of the outputs: the roots of the eigenvalues of C^½ Wᵀ W C^½.
double effective_rank(const Matrix& moments, const Matrix& metric) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solved(moments);
  const Matrix root = solved.eigenvectors() * solved.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal();
  const Eigen::VectorXd squares =
      Eigen::SelfAdjointEigenSolver<Matrix>(root.transpose() * metric * root, Eigen::EigenvaluesOnly)
          .eigenvalues();
  // What rounding leaves of a zero is none.
  const double least = 1e-12 * std::max(squares.maxCoeff(), 0.);
  double sum = 0, entropy = 0;
  std::vector<double> values;
  for (const double square : squares)
    if (square > least) values.push_back(std::sqrt(square));
  for (const double value : values) sum += value;
  for (const double value : values) entropy -= value / sum * std::log(value / sum);
  return values.empty() ? 0 : std::exp(entropy);
}

}  // namespace

OutputFigures OutputStatistics::figures(std::size_t head) const {
  const auto [at, a] = place(head);
  const Site& site = *sites_[at];
  const Sums& sums = sums_[at];
  const Matrix moments = centred(sums.products, sums.mean, sums.positions);
  const double before = site.block(as_matrix(sums.products, moments.rows()), a, a).trace();
  OutputFigures result{.value_dim = static_cast<int>(site.dim),
                       .output_norm = sums.norms[a] / sums.positions,
                       .relative_output_norm = sums.norms[a] / sums.total_norm};
  const Matrix own = site.block(moments, a, a);
  // A constant head's moments are what rounding leaves.
  if (own.trace() > 1e-10 * before)
    result.effective_rank = effective_rank(own, site.block(site.metric, a, a));
  return result;
}

double OutputStatistics::cosine(std::size_t head, std::size_t other) const {
  if (head == other) return 1;
  const auto [first, second] = std::minmax({place(head).head, place(other).head});
  const Sums& sums = sums_[place(head).site];
  const std::size_t i = first * sums.norms.size() + second;
  return sums.cosines[i] / sums.cosine_rows[i];
}

double OutputStatistics::cka(std::size_t head, std::size_t other) const {
  const auto [at, a] = place(head);
  const std::size_t b = place(other).head;
  require(at == place(other).site, "CKA of heads of different attentions");
  const Site& site = *sites_[at];
  const Matrix moments = centred(sums_[at].products, sums_[at].mean, sums_[at].positions);
  const double own = site.squares(moments, a, a), others = site.squares(moments, b, b);
  if (!(own > 0 && others > 0)) return std::numeric_limits<double>::quiet_NaN();
  return site.squares(moments, a, b) / std::sqrt(own * others);
}

namespace {

/// Most tokens of both sides that are read together, and batches that are added up together; the result depends on both.
constexpr std::int64_t tokens_together = 2048;
constexpr std::size_t batches_together = 4;

struct Part {
  OutputStatistics outputs;
  Slab gradient;
};

void measure_batch(const nn::Transformer& model, Exec& exec, std::span<const decode::TokenPair> pairs,
                   decode::Batch batch, Part& part) {
  std::vector<decode::TokenIds> source_ids, target_ids;
  for (const std::int64_t i : batch) {
    source_ids.push_back(pairs[static_cast<std::size_t>(i)].source);
    target_ids.push_back(pairs[static_cast<std::size_t>(i)].target);
  }
  const nn::TokenBatch sources = decode::pack(exec.activations, source_ids),
                       targets = decode::pack(exec.activations, target_ids);
  const nn::AttentionHook hook = [&](const nn::AttentionCall& call) {
    return nn::AttentionInputs{.observe = [&, site = call.site](const nn::AttentionFlow& flow) {
      part.outputs.add(site, flow.output.value());
    }};
  };
  Tape tape(exec, true);
  const nn::Context context{tape, model.parameters(), part.gradient.tensor(), &hook};
  tape.backward(model.loss(context, sources, decode::shift(exec.activations, targets), targets.ids, {}));
}

/// Σ of squares of rows [begin, end) of a parameter, or of its columns where `columns`.
double squares(const nn::ParameterStore& store, const std::string& name, std::span<const double> gradient,
               std::int64_t begin, std::int64_t end, bool columns = false) {
  const nn::Parameter& p = store.at(name);
  const auto values =
      gradient.subspan(static_cast<std::size_t>(p.offset), static_cast<std::size_t>(p.size()));
  const std::int64_t width = p.shape.rank() > 1 ? p.shape[1] : 1;
  double sum = 0;
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    const std::int64_t at = columns ? i % width : i / width;
    if (at >= begin && at < end)
      sum += values[static_cast<std::size_t>(i)] * values[static_cast<std::size_t>(i)];
  }
  return sum;
}

double gradient_norm(const nn::Transformer& model, const Head& head, std::span<const double> gradient) {
  const nn::ModelConfig& config = model.config();
  double sum = 0;
  const auto add = [&](const char* projection, std::int64_t dim) {
    for (const char* what : {"/weight", "/bias"})
      if (config.bias || std::string_view(what) == "/weight")
        sum += squares(model.parameters(), path(head.site) + projection + what, gradient, head.head * dim,
                       (head.head + 1) * dim);
  };
  add("/query", config.key_width());
  add("/key", config.key_width());
  add("/value", config.value_width());
  return std::sqrt(sum + squares(model.parameters(), path(head.site) + "/output/weight", gradient,
                                 head.head * config.value_width(), (head.head + 1) * config.value_width(),
                                 true));
}

}  // namespace

Outputs measure_outputs(const nn::Transformer& model, std::span<const Head> heads,
                        std::span<const decode::TokenPair> pairs, int threads,
                        const decode::Progress& progress) {
  require<DataError>(!pairs.empty(), "outputs of heads: there are no sentence pairs");
  std::vector<std::int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  double target_tokens = 0;
  for (const decode::TokenPair& pair : pairs) target_tokens += static_cast<double>(pair.target.size());
  const std::vector<decode::Batch> batches = decode::cut(order, tokens_together, 1, [&](std::int64_t i) {
    const decode::TokenPair& pair = pairs[static_cast<std::size_t>(i)];
    return static_cast<std::int64_t>(pair.source.size() + pair.target.size());
  });
  const OutputStatistics empty(model, heads);
  Outputs result{empty, {}};
  const nn::ParameterStore& store = model.parameters();
  std::vector<double> gradient(static_cast<std::size_t>(store.slab_size()));
  for (std::size_t first = 0; first < batches.size(); first += batches_together) {
    const auto part_batches =
        std::span(batches).subspan(first, std::min(batches_together, batches.size() - first));
    std::vector<Part> parts;
    for (std::size_t i = 0; i < part_batches.size(); ++i)
      parts.push_back({empty, Slab({store.slab_size()}, store.dtype())});
    decode::for_each_batch(part_batches, threads, progress, nullptr, [&](Exec& exec, decode::Batch batch) {
      std::size_t i = 0;
      while (part_batches[i].data() != batch.data()) ++i;
      measure_batch(model, exec, pairs, batch, parts[i]);
    });
    for (const Part& part : parts) {
      result.statistics.merge(part.outputs);
      dispatch(store.dtype(), [&]<class T>() {
        const auto values = part.gradient.tensor().span<T>();
        for (std::size_t i = 0; i < gradient.size(); ++i)
          gradient[i] += static_cast<double>(values[i]) / target_tokens;
      });
    }
  }
  for (std::size_t h = 0; h < heads.size(); ++h) {
    result.figures.push_back(result.statistics.figures(h));
    result.figures.back().gradient_norm = gradient_norm(model, heads[h], gradient);
  }
  return result;
}

}  // namespace polyhead::heads
