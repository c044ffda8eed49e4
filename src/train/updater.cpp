#include "polyhead/train/updater.h"

#include <algorithm>

#include "finite.h"
#include "memory.h"
#include "polyhead/core/clock.h"
#include "polyhead/core/memory.h"

namespace polyhead::train {
namespace {

std::vector<DecayRange> decay_ranges(const nn::ParameterStore& store) {
  std::vector<DecayRange> ranges;
  for (const nn::Parameter& p : store.parameters()) ranges.push_back({p.offset, p.size(), p.decays()});
  return ranges;
}

}  // namespace

Updater::Updater(const Config& config, nn::Transformer& model, int threads)
    : config_(config),
      model_(model),
      first_moment_(Shape{model.parameters().slab_size()}, DType::f32),
      second_moment_(Shape{model.parameters().slab_size()}, DType::f32),
      workers_(static_cast<std::size_t>(threads)),
      gradient_(model, config.training.shards(), config.training.precision, workers_,
                config.training.disagreement),
      gates_(model),
      adam_(config.training.adam, decay_ranges(model.parameters())),
      schedule_(config.training.schedule, config.model.d_model) {
  for (const Slab* moment : {&first_moment_, &second_moment_})
    fill_zero(moment->tensor());  // there when memory is counted
  if (config.training.ema_decay > 0) average_.emplace(Shape{model.parameters().slab_size()}, DType::f32);
}

std::int64_t Updater::expected_memory(const data::ParallelCorpus& corpus, std::span<const std::int32_t> pairs,
                                      std::int64_t besides) {
  std::int64_t others = 0;
  try {
    others = gradient_.dry_run(corpus, pairs) + in_huge_pages(1);  // scratch_
  } catch (const MemoryError&) {
    refuse_memory({});
  }
  const std::int64_t bytes = std::max(peak_resident_bytes(), resident_bytes() + others + besides);
  require_memory(bytes);
  // Where address space is limited, what has none yet. Arenas take half as much again as they need (see Arena).
  constexpr std::int64_t stack = 8 << 20;
  std::int64_t added = besides + besides / 2;
  for (const Worker& worker : std::span(workers_).subspan(1))
    added += stack + static_cast<std::int64_t>(workers_[0].capacity() - worker.capacity());
  if (address_space_bytes() + added > address_space_limit()) refuse_memory({});
  return bytes;
}

StepReport Updater::run(const data::ParallelCorpus& corpus, std::span<const std::int32_t> pairs,
                        std::int64_t step) {
  const Clock::time_point begin = Clock::now();
  const int threads = static_cast<int>(workers_.size());
  const RngKey key = RngKey{config_.seed}.fold("update").fold(static_cast<std::uint64_t>(step - 1));
  const TreeReduction& sum = gradient_.run(corpus, pairs, config_.training.label_smoothing, key);
  const ShardTotals& totals = sum.totals();
  // Gradients are sums over target tokens; the penalty counts beside their mean.
  gates_.add_penalty(config_.training.head_gates.lambda * totals.tokens, sum.gradients());
  const double rate = schedule_.rate(step);
  const double norm = [&] {
    const ProfileTimer timer(own_profile(), "global_norm", Pass::update);
    return global_norm(sum.gradients(), scratch_, threads) / totals.tokens;
  }();
  StepReport report{.step = step,
                    .loss = totals.loss / totals.tokens,
                    .negative_log_likelihood = totals.negative_log_likelihood / totals.tokens,
                    .token_accuracy = 100 * totals.correct / totals.tokens,
                    .learning_rate = rate,
                    .grad_norm = norm,
                    .target_tokens = totals.tokens};
  if (!gates_.empty()) report.open_heads = gates_.expected_open();
  const auto weights = config_.training.disagreement.weights();
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0) report.disagreement[i] = totals.disagreement[i] / totals.tokens;
  const nn::ParameterStore& store = model_.parameters();
  require_finite_update(report, store, sum.gradients());
  {
    const ProfileTimer timer(own_profile(), "Adam", Pass::update);
    adam_.step({store.slab(), sum.gradients(), first_moment_.tensor(), second_moment_.tensor()}, step, rate,
               clip_factor(norm, config_.training.adam.clip_norm) / totals.tokens, threads);
  }
  if (average_) {
    const ProfileTimer timer(own_profile(), "average", Pass::update);
    update_average(average_->tensor(), store.slab(), average_decay(config_.training.ema_decay, step),
                   threads);
  }
  report.target_tokens_per_second = totals.tokens / seconds_since(begin);
  return report;
}

void Updater::start_profile() {
  profiles_.assign(workers_.size() + 1, Profile{});
  for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i].set_profile(&profiles_[i]);
}

Profile Updater::profile() const {
  Profile all;
  for (const Profile& one : profiles_) all.add(one);
  return all;
}

}  // namespace polyhead::train
