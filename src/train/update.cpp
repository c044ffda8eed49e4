#include "polyhead/train/update.h"

#include <algorithm>
#include <functional>

#include "polyhead/core/memory.h"
#include "polyhead/core/parallel.h"
#include "polyhead/kernels/bf16.h"

namespace polyhead::train {
namespace {

Segments segments_of(std::span<const Segment> spans, std::int32_t first) { return {spans, first}; }

Tensor ids_of(std::span<const std::int32_t> ids) {
  // Tensors are views without const; ops only read their ids.
  return {const_cast<std::int32_t*>(ids.data()), {static_cast<std::int64_t>(ids.size())}, DType::i32};
}

template <class T>
std::span<T> room(Arena& arena, std::int64_t count) {
  const auto n = static_cast<std::size_t>(count);
  return {arena.allocate<T>(n), n};
}

data::PackedBatch pack_in(Arena& arena, const data::ParallelCorpus& corpus,
                          std::span<const std::int32_t> pairs) {
  const data::TokenCount tokens = data::count_tokens(corpus, pairs);
  const auto sentences = static_cast<std::int64_t>(pairs.size());
  return data::pack(corpus, pairs,
                    {room<std::int32_t>(arena, tokens.source), room<std::int32_t>(arena, tokens.target),
                     room<std::int32_t>(arena, tokens.target), room<Segment>(arena, sentences),
                     room<Segment>(arena, sentences)});
}

ShardTotals totals_of(double loss, const Tensor& token_loss, const Tensor& predictions,
                      std::span<const std::int32_t> outputs) {
  ShardTotals totals{.loss = loss, .tokens = static_cast<double>(outputs.size())};
  dispatch(token_loss.dtype, [&]<class T>() {
    for (const T x : token_loss.span<T>()) totals.negative_log_likelihood += static_cast<double>(x);
  });
  const std::int32_t* predicted = predictions.as<std::int32_t>();
  for (std::size_t i = 0; i < outputs.size(); ++i) totals.correct += predicted[i] == outputs[i] ? 1 : 0;
  return totals;
}

}  // namespace

ShardTotals Worker::run(const nn::Transformer& model, const data::ParallelCorpus& corpus,
                        std::span<const std::int32_t> pairs, std::int32_t first, double label_smoothing,
                        RngKey key, const Tensor& gradients, const HalfPrecision* half,
                        const HeadGates* gates, const Disagreement* disagreement) {
  if (pairs.empty()) return {};
  const ArenaScope scope(activations_);
  const data::PackedBatch batch = pack_in(activations_, corpus, pairs);
  const auto tokens = static_cast<std::int64_t>(batch.target_output.size());

  const bool training = static_cast<bool>(gradients);
  std::optional<HalfPrecision> own;  // what it remembers is of one thread
  if (half) own = *half;
  Exec exec{activations_, scratch_, key, training, own ? &*own : nullptr, profile_};
  Tape tape(exec, training);
  nn::Context context{tape, model.parameters(), gradients};
  std::optional<ShardDisagreement> terms;
  if (disagreement && !disagreement->empty()) terms.emplace(*disagreement);
  const auto inputs = [&](const nn::AttentionCall& call) {
    nn::AttentionInputs result = gates ? gates->inputs(context, call) : nn::AttentionInputs{};
    if (terms) result.observe = [&shard = *terms](const nn::AttentionFlow& flow) { shard.add(flow); };
    return result;
  };
  const nn::AttentionHook hook = std::ref(inputs);  // a copy of it would take memory from the heap
  if (terms || (gates && !gates->empty())) context.attention = &hook;
  const DType dtype = model.parameters().dtype();
  const Tensor token_loss = activations_.tensor({tokens}, dtype);
  const Tensor predictions = activations_.tensor({tokens}, DType::i32);
  const Var loss = model.loss(
      context, {ids_of(batch.source), segments_of(batch.source_segments, first)},
      {ids_of(batch.target_input), segments_of(batch.target_segments, first)}, ids_of(batch.target_output),
      {.label_smoothing = label_smoothing, .token_loss = token_loss, .predictions = predictions});
  if (training) tape.backward(terms ? terms->add_to(tape, loss) : loss);
  const double value =
      dispatch(dtype, [&]<class T>() { return static_cast<double>(*loss.value().template as<T>()); });
  ShardTotals totals = totals_of(value, token_loss, predictions, batch.target_output);
  if (terms) totals.disagreement = terms->sums();
  return totals;
}

Precision available(Precision wanted) { return kernels::has_bf16() ? wanted : Precision::f32; }

GradientStep::GradientStep(const nn::Transformer& model, int shards, Precision precision,
                           std::span<Worker> workers, const DisagreementConfig& disagreement)
    : model_(model),
      gates_(model),
      disagreement_(disagreement, model.config()),
      workers_(workers.first(std::min(workers.size(), static_cast<std::size_t>(shards)))),
      shards_(static_cast<std::size_t>(shards)),
      reduction_(shards, model.parameters().slab_size(), model.parameters().dtype()) {
  if (available(precision) == Precision::bf16)
    copies_.emplace(Shape{model.parameters().slab_size()}, DType::bf16);
}

std::optional<HalfPrecision> GradientStep::refresh_copies() const {
  if (!copies_) return std::nullopt;
  const HalfPrecision half{model_.parameters().slab(), copies_->tensor()};
  kernels::to_bf16(half.weights.span<float>(), half.copies.span<BFloat16>());
  return half;
}

std::int64_t GradientStep::dry_run(const data::ParallelCorpus& corpus, std::span<const std::int32_t> pairs) {
  data::cut_shards(corpus, pairs, shards_);
  const auto largest = *std::max_element(shards_.begin(), shards_.end(), [&](auto a, auto b) {
    return data::count_tokens(corpus, a).both() < data::count_tokens(corpus, b).both();
  });
  const std::optional<HalfPrecision> half = refresh_copies();
  disagreement_.begin(data::count_tokens(corpus, pairs));
  reduction_.begin(1);
  workers_[0].run(model_, corpus, largest, 0, 0, RngKey{}, reduction_.acquire(0), half ? &*half : nullptr,
                  &gates_, &disagreement_);
  const auto others = static_cast<std::int64_t>(workers_.size()) - 1;
  // Of activations and temporaries, in pages each.
  const auto arenas = in_huge_pages(static_cast<std::int64_t>(workers_[0].peak_bytes())) + in_huge_pages(1);
  return others * arenas + reduction_.touched_bytes(others);
}

const TreeReduction& GradientStep::run(const data::ParallelCorpus& corpus,
                                       std::span<const std::int32_t> pairs, double label_smoothing,
                                       RngKey key) {
  data::cut_shards(corpus, pairs, shards_);
  const auto n = static_cast<std::int64_t>(shards_.size());
  const std::optional<HalfPrecision> half = refresh_copies();
  disagreement_.begin(data::count_tokens(corpus, pairs));
  reduction_.begin(n);
  parallel_for(static_cast<int>(workers_.size()), n, [&](std::int64_t i, int worker) {
    const auto shard = shards_[static_cast<std::size_t>(i)];
    const auto first = static_cast<std::int32_t>(shard.data() - pairs.data());
    Worker& own = workers_[static_cast<std::size_t>(worker)];
    const Tensor gradients = [&] {
      const ProfileTimer timer(own.profile(), "clear_gradients", Pass::update);
      return reduction_.acquire(i);
    }();
    const ShardTotals totals = own.run(model_, corpus, shard, first, label_smoothing, key, gradients,
                                       half ? &*half : nullptr, &gates_, &disagreement_);
    const ProfileTimer timer(own.profile(), "add_gradients", Pass::update);
    reduction_.complete(i, totals);
  });
  return reduction_;
}

ShardTotals evaluate_loss(const nn::Transformer& model, const data::ParallelCorpus& corpus,
                          std::int64_t batch_tokens, std::span<Worker> workers) {
  const data::BatchPlan plan = data::BatchPlan::validation(corpus, batch_tokens);
  std::vector<ShardTotals> totals(static_cast<std::size_t>(plan.size()));
  parallel_for(static_cast<int>(workers.size()), plan.size(), [&](std::int64_t i, int worker) {
    totals[static_cast<std::size_t>(i)] =
        workers[static_cast<std::size_t>(worker)].run(model, corpus, plan[i], 0, 0, RngKey{}, Tensor{});
  });
  ShardTotals sum;
  for (const ShardTotals& t : totals) sum += t;
  return sum;
}

}  // namespace polyhead::train
