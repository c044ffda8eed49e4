#pragma once

#include <memory>
#include <span>
#include <vector>

#include "polyhead/heads/attention_maps.h"

/// What heads add to their layer. Head a's output at a position is o_a = W^O_a y_a, its slice of W^O times its weighted sum
/// of values; attention is their sum and a bias, which is no head's.
namespace polyhead::heads {

/// Figures of one head over positions t.
struct OutputFigures {
  int value_dim = 0;
  double output_norm = 0;           ///< mean of ‖o_a(t)‖
  double relative_output_norm = 0;  ///< that, divided by the mean of ‖Σ_a o_a(t)‖
  /// exp(−Σ p ln p), p the singular values of the centred outputs [positions, d_model], divided by their sum (Roy &
  /// Vetterli 2007, "The effective rank"): 1 … value_dim, how many directions the head writes to. 0 where it is constant.
  double effective_rank = 0;
  /// √ of the sum of squares of the gradient of the loss (nats a target token, over all pairs, without dropout and label
  /// smoothing) by the head's slices of W^Q, W^K, W^V and their biases, and of W^O.
  double gradient_norm = 0;
};

/// Adds up what the outputs of all heads show: their norms and second moments.
class OutputStatistics {
 public:
  /// `heads` must outlive it.
  OutputStatistics(const nn::Transformer& model, std::span<const Head> heads);
  /// The heads' outputs before W^O at some positions of one attention, [positions, heads·value_dim].
  void add(const nn::AttentionSite& site, const Tensor& outputs);
  void merge(const OutputStatistics& other);

  /// All but the gradient.
  OutputFigures figures(std::size_t head) const;
  /// Of two heads of one attention: mean over positions of cos(o_a, o_b) (the output disagreement of Li et al. 2018,
  /// arXiv:1810.10183, without its sign); positions where one is zero are left out.
  double cosine(std::size_t head, std::size_t other) const;
  /// Linear centred kernel alignment (Kornblith et al. 2019, arXiv:1905.00414) of the centred outputs X, Y:
  ///   ‖YᵀX‖²_F / (‖XᵀX‖_F·‖YᵀY‖_F), 0 … 1; 1 where Y is X but for rotation and scale. Not a number for a constant head.
  double cka(std::size_t head, std::size_t other) const;

 private:
  struct Site;
  struct Place {
    std::size_t site, head;
  };
  Place place(std::size_t head) const;
  std::span<const Head> heads_;
  std::vector<std::shared_ptr<const Site>> sites_;  // what does not change while adding up
  struct Sums {
    double positions = 0, total_norm = 0;
    std::vector<double> mean, products;               // Σ y, Σ y yᵀ of all heads together
    std::vector<double> norms, cosines, cosine_rows;  // [heads], [heads·heads], [heads·heads]
  };
  std::vector<Sums> sums_;
};

/// Figures of all heads over pairs, the given target as the decoder's input. The result does not depend on `threads`.
struct Outputs {
  OutputStatistics statistics;
  std::vector<OutputFigures> figures;
};
/// `heads`: all_heads() of the model; must outlive the result. Throws as AttentionMaps, DataError without pairs.
Outputs measure_outputs(const nn::Transformer& model, std::span<const Head> heads,
                        std::span<const decode::TokenPair> pairs, int threads,
                        const decode::Progress& progress = {});

}  // namespace polyhead::heads
