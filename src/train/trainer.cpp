#include "polyhead/train/trainer.h"

#include <chrono>
#include <cmath>
#include <filesystem>

#include "polyhead/config/yaml.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/run_folder.h"
#include "run_log.h"
#include "trainer_state.h"

namespace polyhead::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<DecayRange> decay_ranges(const nn::ParameterStore& store) {
  std::vector<DecayRange> ranges;
  for (const nn::Parameter& p : store.parameters()) ranges.push_back({p.offset, p.size(), p.decays()});
  return ranges;
}

/// The tokenizers of a run: those of the checkpoint it goes on from, else learnt from the training text.
text::TextPipeline make_pipeline(const Config& config, const Checkpoint* from,
                                 const data::ParallelText& text) {
  if (from) return text::TextPipeline::deserialize(from->vocabulary);
  return text::TextPipeline::learn(config.tokenizer, config.data.lowercase, text.source, text.target);
}

data::Filter training_filter(const Config& config) {
  return {.skip_empty = true, .max_length = config.max_pieces()};
}

/// One run, from its state at some update on.
class Trainer {
 public:
  Trainer(const Config& config, const TrainOptions& options, Observer& observer, const Checkpoint* resumed,
          const Checkpoint* initial);
  TrainResult run();

 private:
  std::optional<StopReason> limit_reached() const;
  void update(std::span<const std::int32_t> pairs);
  void check_finite(const TreeReduction& sum, double norm, double rate) const;
  void validate();
  void save();
  void remove_old_checkpoints() const;
  Checkpoint snapshot() const;
  double elapsed() const { return state_.seconds + seconds_since(begin_); }

  const Config& config_;
  const TrainOptions& options_;
  Observer& observer_;
  RunFolder folder_;
  data::ParallelText text_;
  text::TextPipeline pipeline_;
  data::ParallelCorpus corpus_;
  std::optional<data::ParallelText> validation_text_;
  std::optional<Validation> validation_;
  nn::Transformer model_;
  Slab first_moment_, second_moment_;
  std::optional<Slab> average_;
  std::vector<Worker> workers_;
  GradientStep gradient_;
  Adam adam_;
  Schedule schedule_;
  Arena scratch_;
  TrainerState state_;
  std::optional<RunLog> log_;
  Clock::time_point begin_ = Clock::now();
  std::int64_t saved_step_ = -1;
};

nn::Transformer make_model(const Config& config, const text::TextPipeline& pipeline) {
  nn::Transformer model(config.model, pipeline.source().size(), pipeline.target().size());
  model.parameters().allocate(DType::f32);
  model.parameters().initialise(config.seed);
  return model;
}

Trainer::Trainer(const Config& config, const TrainOptions& options, Observer& observer,
                 const Checkpoint* resumed, const Checkpoint* initial)
    : config_(config),
      options_(options),
      observer_(observer),
      folder_(options.folder),
      text_(data::load_text(config.data, data::Split::train, config.seed)),
      pipeline_(make_pipeline(config, resumed ? resumed : initial, text_)),
      corpus_(data::ParallelCorpus::encode(text_, pipeline_, training_filter(config))),
      model_(make_model(config, pipeline_)),
      first_moment_(Shape{model_.parameters().slab_size()}, DType::f32),
      second_moment_(Shape{model_.parameters().slab_size()}, DType::f32),
      workers_(static_cast<std::size_t>(options.threads)),
      gradient_(model_, config.training.shards(), workers_),
      adam_(config.training.adam, decay_ranges(model_.parameters())),
      schedule_(config.training.schedule, config.model.d_model) {
  observer_.message(corpus_.report().summary("train", training_filter(config)));
  const nn::ParameterStore& store = model_.parameters();
  if (data::has_split(config.data, data::Split::valid)) {
    validation_text_ = data::load_text(config.data, data::Split::valid, config.seed);
    validation_.emplace(config, *validation_text_, pipeline_);
  } else {
    require(config.training.patience == 0 && config.training.schedule.schedule != "plateau",
            "training.patience and schedule plateau need data.valid, which is not given");
  }
  state_.corpus = digest(corpus_);
  if (config.training.ema_decay > 0) average_.emplace(Shape{store.slab_size()}, DType::f32);
  if (initial)
    fill_slab(store, initial->ema.empty() ? initial->parameters : initial->ema, store.slab(),
              *config.training.initial_checkpoint);
  if (average_) copy(store.slab(), average_->tensor());
  if (resumed) {
    const std::string path = checkpoint_path(folder_.checkpoints(), resumed->step);
    const TrainerState read = TrainerState::parse(resumed->state, path);
    require<DataError>(read.corpus == state_.corpus, path,
                       ": the training data are not those that the run began with");
    state_ = read;
    schedule_.restore(state_.schedule);
    fill_slab(store, resumed->parameters, store.slab(), path);
    fill_slab(store, resumed->first_moment, first_moment_.tensor(), path);
    fill_slab(store, resumed->second_moment, second_moment_.tensor(), path);
    if (average_) fill_slab(store, resumed->ema, average_->tensor(), path);
    saved_step_ = state_.step;
  }
  // Only now: data that cannot be used leave no folder behind that looks like a run.
  folder_.create(config::dump(config));
  folder_.cut_log(state_.step);
  log_.emplace(folder_.log());
  observer_.message(concat("model: ", store.count(), " parameters, vocabulary ", pipeline_.source().size(),
                           pipeline_.shared() ? " shared" : concat(" and ", pipeline_.target().size())));
}

std::optional<StopReason> Trainer::limit_reached() const {
  const TrainingConfig& t = config_.training;
  if (t.max_steps && state_.step >= *t.max_steps) return StopReason::max_steps;
  if (t.max_epochs && state_.epoch >= *t.max_epochs) return StopReason::max_epochs;
  if (t.max_minutes && elapsed() >= *t.max_minutes * 60) return StopReason::max_minutes;
  if (t.patience > 0 && state_.validations_without_best >= t.patience) return StopReason::patience;
  return std::nullopt;
}

TrainResult Trainer::run() {
  begin_ = Clock::now();
  std::optional<StopReason> reason = limit_reached();
  data::BatchPlan plan;
  std::int64_t planned_epoch = -1;
  while (!reason) {
    if (planned_epoch != state_.epoch) {
      planned_epoch = state_.epoch;
      plan = data::BatchPlan::training(
          corpus_, std::int64_t{config_.training.batch_tokens} * config_.training.accumulate, config_.seed,
          static_cast<std::uint64_t>(planned_epoch));
    }
    update(plan[state_.batch]);
    ++state_.batch;
    const bool epoch_ended = state_.batch == plan.size();
    if (epoch_ended) {
      ++state_.epoch;
      state_.batch = 0;
    }
    if (validation_ && config_.training.validate_every.due(state_.step, epoch_ended)) validate();
    if (config_.training.checkpoint_every.due(state_.step, epoch_ended) || state_.is_best(state_.step))
      save();
    reason = limit_reached();
    if (!reason && options_.stop_requested()) reason = StopReason::signal;
  }
  if (saved_step_ != state_.step) save();
  return {state_.step, *reason};
}

void Trainer::update(std::span<const std::int32_t> pairs) {
  const Clock::time_point begin = Clock::now();
  const RngKey key = RngKey{config_.seed}.fold("update").fold(static_cast<std::uint64_t>(state_.step));
  const TreeReduction& sum = gradient_.run(corpus_, pairs, config_.training.label_smoothing, key);
  const ShardTotals& totals = sum.totals();
  const std::int64_t step = state_.step + 1;
  const double rate = schedule_.rate(step);
  const double norm = global_norm(sum.gradients(), scratch_, options_.threads) / totals.tokens;
  check_finite(sum, norm, rate);
  const nn::ParameterStore& store = model_.parameters();
  adam_.step({store.slab(), sum.gradients(), first_moment_.tensor(), second_moment_.tensor()}, step, rate,
             clip_factor(norm, config_.training.adam.clip_norm) / totals.tokens, options_.threads);
  if (average_)
    update_average(average_->tensor(), store.slab(), config_.training.ema_decay, options_.threads);
  state_.step = step;
  const StepReport report{.step = step,
                          .epoch = state_.epoch + 1,
                          .loss = totals.loss / totals.tokens,
                          .negative_log_likelihood = totals.negative_log_likelihood / totals.tokens,
                          .learning_rate = rate,
                          .grad_norm = norm,
                          .target_tokens = totals.tokens,
                          .target_tokens_per_second = totals.tokens / seconds_since(begin),
                          .seconds = elapsed()};
  log_->step(report);
  observer_.step(report);
}

void Trainer::check_finite(const TreeReduction& sum, double norm, double rate) const {
  const ShardTotals& totals = sum.totals();
  if (std::isfinite(totals.loss) && std::isfinite(norm)) return;
  const std::int64_t bad = first_non_finite(sum.gradients());
  std::string where = "none: the norm overflows";
  for (const nn::Parameter& p : model_.parameters().parameters())
    if (bad >= p.offset && bad < p.offset + p.size()) where = p.path;
  throw NumbersError(concat("training failed at step ", state_.step + 1, ": loss ",
                            totals.loss / totals.tokens, ", learning rate ", rate, ", gradient norm ", norm,
                            ", first parameter with a gradient that is not finite: ", where,
                            "; the last checkpoint is unchanged"));
}

void Trainer::validate() {
  const nn::ParameterStore& store = model_.parameters();
  // The average stands in for the weights, as it will when decoding.
  const auto exchange = [&] {
    if (average_)
      std::swap_ranges(store.slab().as<float>(), store.slab().as<float>() + store.slab_size(),
                       average_->tensor().as<float>());
  };
  exchange();
  const Figures figures = validation_->run(model_, config_.training.decoded_metrics(), workers_);
  exchange();
  for (const auto& [name, value] : figures)
    require<NumbersError>(std::isfinite(value), "validation failed at step ", state_.step, ": ",
                          config::Codec<Metric>::text(name), " is ", value,
                          "; the last checkpoint is unchanged");
  const Metric metric = config_.training.best_metric;
  const bool best = state_.record(figures.at(metric), lower_is_better(metric), config_.training.keep_best);
  schedule_.validated(lower_is_better(metric) ? -figures.at(metric) : figures.at(metric));
  log_->validation(state_.step, figures);
  observer_.validated(state_.step, figures, best);
}

Checkpoint Trainer::snapshot() const {
  const nn::ParameterStore& store = model_.parameters();
  TrainerState state = state_;
  state.seconds = elapsed();
  state.schedule = schedule_.state();
  Checkpoint checkpoint;
  checkpoint.parameters = arrays_of(store, store.slab());
  if (average_) checkpoint.ema = arrays_of(store, average_->tensor());
  checkpoint.first_moment = arrays_of(store, first_moment_.tensor());
  checkpoint.second_moment = arrays_of(store, second_moment_.tensor());
  checkpoint.step = state_.step;
  checkpoint.epoch = state_.epoch;
  checkpoint.state = state.dump();
  checkpoint.config = config::dump(config_);
  checkpoint.vocabulary = pipeline_.serialize();
  return checkpoint;
}

void Trainer::save() {
  const std::string path = checkpoint_path(folder_.checkpoints(), state_.step);
  write_checkpoint(path, snapshot());
  saved_step_ = state_.step;
  if (!state_.best.empty()) folder_.set_best_step(state_.best.front().step);
  remove_old_checkpoints();
  observer_.saved(path);
}

void Trainer::remove_old_checkpoints() const {
  const std::vector<CheckpointFile> files = list_checkpoints(folder_.checkpoints());
  const auto keep_from = static_cast<std::int64_t>(files.size()) - config_.training.keep_last;
  for (std::int64_t i = 0; i < keep_from; ++i) {
    const CheckpointFile& file = files[static_cast<std::size_t>(i)];
    if (!state_.is_best(file.step)) std::filesystem::remove(file.path);
  }
}

/// The newest checkpoint of a run that goes on, after checking that nothing but limits and intervals changed.
std::optional<Checkpoint> resume_point(const Config& config, const RunFolder& folder, Observer& observer) {
  LatestCheckpoint latest = latest_valid_checkpoint(folder.checkpoints());
  for (const std::string& reason : latest.skipped) observer.message("skipped: " + reason);
  if (!latest.checkpoint) {
    observer.message(concat(folder.path(), ": no checkpoint to resume from, training from the start"));
    return std::nullopt;
  }
  std::string changed;
  for (const config::Difference& d : config::difference(config_of(*latest.checkpoint, latest.path), config))
    if (!may_change_on_resume(d.key))
      changed += concat(changed.empty() ? "" : ", ", d.key, " (", d.first, " -> ", d.second, ")");
  require(changed.empty(), folder.path(), ": cannot resume with other settings: ", changed,
          "; expected only limits and intervals to change");
  observer.message(concat("resuming from ", latest.path));
  return std::move(latest.checkpoint);
}

}  // namespace

const char* name(StopReason reason) {
  switch (reason) {
    case StopReason::max_steps:
      return "training.max_steps";
    case StopReason::max_epochs:
      return "training.max_epochs";
    case StopReason::max_minutes:
      return "training.max_minutes";
    case StopReason::patience:
      return "training.patience";
    case StopReason::signal:
      return "a signal";
  }
  return "";
}

TrainResult train(const Config& config, const TrainOptions& options, Observer& observer) {
  const RunFolder folder(options.folder);
  std::optional<Checkpoint> resumed, initial;
  if (options.resume) resumed = resume_point(config, folder, observer);
  require<FileError>(options.resume || !folder.exists(), options.folder,
                     ": holds a run already; expected --resume, or another folder with --out");
  if (!resumed && config.training.initial_checkpoint)
    initial = read_checkpoint(resolve_checkpoint(*config.training.initial_checkpoint));
  Trainer trainer(config, options, observer, resumed ? &*resumed : nullptr, initial ? &*initial : nullptr);
  resumed.reset();
  initial.reset();
  return trainer.run();
}

}  // namespace polyhead::train
