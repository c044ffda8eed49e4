#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "polyhead/heads/attention_maps.h"
#include "polyhead/text/pipeline.h"

/// What the attention weights of heads look like. W[q, k] is the weight of query position q on key k; n(q) keys are visible
/// to it: all of the source, or in the decoder's self-attention those up to q. Means over positions leave out those with
/// one visible key, which have no choice, unless said otherwise.
namespace polyhead::heads {

/// What is known of the ids of sentence pairs. Spans must outlive whoever reads them.
struct TokenKnowledge {
  std::span<const decode::TokenPair> pairs;
  /// By id: whether it separates words rather than being one: bos, eos, and pieces of ASCII punctuation alone.
  std::vector<bool> source_separators, target_separators;
  /// By id: how often the sources of `pairs` have it.
  std::vector<std::int64_t> source_counts;
};
TokenKnowledge token_knowledge(std::span<const decode::TokenPair> pairs, const text::TextPipeline& pipeline);

/// Figures of one head.
struct WeightFigures {
  std::int64_t positions = 0;   ///< with more than one visible key
  double entropy = 0;           ///< mean of H(q) = −Σ_k W ln W, nats
  double relative_entropy = 0;  ///< mean of H(q)/ln n(q), 0 … 1
  /// Mean over all positions of the largest weight, that on the source's end token left out (Voita et al. 2019,
  /// arXiv:1905.09418, section 4).
  double confidence = 0;
  /// How many positions q have their largest weight on q + offset.
  std::map<std::int64_t, std::int64_t> offsets = {};
  std::int64_t offset = 0;  ///< the most frequent; of equals the nearest to 0, the negative one first
  double offset_share = 0;  ///< of the positions
  /// Voita et al. 2019, section 5.2.1: one offset holds the largest weight at least 90% of the time.
  bool positional() const { return offset_share >= 0.9; }
  /// Over positions of heads that look at the source: the share whose largest weight among tokens (end token left out)
  /// is on one that no other of the sentence is rarer than, by how often the sources of all pairs have it (Voita et al.
  /// 2019, section 5.2.3); and what a token chosen at random would get. Not a number in the decoder's self-attention.
  double rare_word = 0, rare_word_baseline = 0;
  /// Mean over all positions of the weight on separators together (Clark et al. 2019, arXiv:1906.04341, section 3.2).
  double separator_mass = 0;
  /// √ of the mean over positions of the variance of ln W[q, ·] over visible keys, which is that of the logits: the softmax
  /// takes only a constant from them. Weights that f32 rounds to 0 count as its smallest number.
  double logit_deviation = 0;
  /// Share of positions whose largest weight is above 0.99, where softmax hardly passes a gradient (Zhai et al. 2023,
  /// arXiv:2303.06296, call it entropy collapse).
  double saturation = 0;
};

/// Rollout up to a layer (Abnar & Zuidema 2020, arXiv:2005.00928): with Ā the mean of a layer's heads, R₀ = I,
///   R_l = (Ā_l + I)/2·R_{l−1}
/// says how much of position k's input is in position q after layer l.
struct RolloutFigures {
  nn::AttentionSite site;
  double self = 0;              ///< mean of R[q, q]
  double relative_entropy = 0;  ///< of the rows of R, as WeightFigures::relative_entropy
};
/// R after each layer, [n·n] row by row; `layers`: of each layer the maps of its heads, all n × n. A layer without heads
/// changes nothing.
std::vector<std::vector<double>> rollout(std::span<const std::vector<const AttentionMap*>> layers,
                                         std::int64_t n);

/// Adds up what the maps of all heads show, for AttentionMaps::gather().
class WeightStatistics {
 public:
  /// Both must outlive it.
  WeightStatistics(std::span<const Head> heads, const TokenKnowledge& tokens);
  void add(std::int64_t pair, std::span<const AttentionMap> maps);
  void merge(const WeightStatistics& other);

  WeightFigures figures(std::size_t head) const;
  /// Mean over all positions of the Jensen–Shannon distance of two heads of one attention,
  ///   √(H₂((p + q)/2) − (H₂(p) + H₂(q))/2)  in bits, 0 … 1  (Endres & Schindelin 2003)
  double jensen_shannon(std::size_t head, std::size_t other) const;
  /// Of the encoder and of the decoder's self-attention, layer by layer.
  std::vector<RolloutFigures> rollouts() const;

 private:
  struct Sums {
    std::int64_t rows = 0, positions = 0, rare_rows = 0, rare_hits = 0, saturated = 0;
    double entropy = 0, relative_entropy = 0, confidence = 0, rare_chance = 0, separator_mass = 0,
           logit_variance = 0;
    std::map<std::int64_t, std::int64_t> offsets = {};
    std::vector<double> distances = {};  // to the later heads of its attention
  };
  struct RolloutSums {
    nn::AttentionSite site;
    double self = 0, relative_entropy = 0;
    std::int64_t positions = 0;
  };
  void add_map(const Head& head, const decode::TokenPair& pair, const AttentionMap& map, Sums& sums) const;
  void add_rare(std::span<const double> row, decode::TokenIds source, Sums& sums) const;
  bool separates(nn::AttentionKind kind, const decode::TokenPair& pair, std::int64_t key) const;
  void add_distances(std::span<const AttentionMap> maps);
  void add_rollout(nn::AttentionKind kind, std::span<const AttentionMap> maps);

  std::span<const Head> heads_;
  const TokenKnowledge& tokens_;
  std::vector<Sums> sums_;
  std::vector<RolloutSums> rollouts_;
};

}  // namespace polyhead::heads
