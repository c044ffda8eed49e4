#include "polyhead/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>

#include "finite.h"
#include "memory.h"
#include "polyhead/config/yaml.h"
#include "polyhead/core/clock.h"
#include "polyhead/core/folder_lock.h"
#include "polyhead/core/memory.h"
#include "polyhead/train/checkpoint.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/run_folder.h"
#include "polyhead/train/training_data.h"
#include "retention.h"
#include "run_log.h"
#include "start.h"
#include "trainer_state.h"

namespace polyhead::train {
namespace {

constexpr const char* doing = "trained";  // with its folder

/// Learned gates folded into the weights of a model while this lives, as whoever uses it will find them.
class FoldedGates {
 public:
  explicit FoldedGates(const nn::Transformer& model) : slab_(model.parameters().slab()) {
    const HeadGates gates(model);
    if (gates.empty()) return;
    kept_.emplace(slab_.shape, slab_.dtype);
    copy(slab_, kept_->tensor());
    gates.fold();
  }
  ~FoldedGates() {
    if (kept_) std::memcpy(slab_.data, kept_->tensor().data, slab_.bytes());
  }
  FoldedGates(const FoldedGates&) = delete;
  FoldedGates& operator=(const FoldedGates&) = delete;

 private:
  Tensor slab_;
  std::optional<Slab> kept_;
};

/// One run, from its state at some update on.
class Trainer {
 public:
  /// `lock` is that of the folder where it holds a run already, else null.
  Trainer(const Config& config, const TrainOptions& options, Observer& observer, const Checkpoint* resumed,
          const Checkpoint* initial, std::unique_ptr<FolderLock> lock);
  TrainResult run();

 private:
  void restore(const Checkpoint& resumed);
  void open_folder();
  std::optional<StopReason> limit_reached() const;
  const data::BatchPlan& plan();
  void expect_memory();
  void update(std::span<const std::int32_t> pairs);
  void validate();
  std::string diagnostics();
  Figures measure();
  template <class Work>
  auto with_decoding_weights(const Work& work);
  template <class Work>
  bool may_fail(const Work& work);
  void log(const std::function<void(RunLog&)>& write);
  void save(bool due);
  void check_savable() const;
  Checkpoint snapshot() const;
  double elapsed() const { return seconds_before_ + seconds_since(begin_); }

  const Config& config_;
  const TrainOptions& options_;
  Observer& observer_;
  RunFolder folder_;
  std::unique_ptr<FolderLock> lock_;  ///< null until there is a folder
  TrainingData data_;
  std::optional<data::ParallelText> validation_text_;
  std::optional<Validation> validation_;
  nn::Transformer model_;
  Updater updater_;
  TrainerState state_;
  data::BatchPlan plan_;
  std::int64_t planned_epoch_ = -1;
  std::optional<RunLog> log_;
  StepReport last_;  ///< the update made last
  double seconds_before_ = 0;
  Clock::time_point begin_ = Clock::now();
  std::int64_t saved_step_ = -1;
  bool ending_ = false;      ///< nothing is left to go on with
  bool log_failed_ = false;  ///< the line before could not be written
};

Trainer::Trainer(const Config& config, const TrainOptions& options, Observer& observer,
                 const Checkpoint* resumed, const Checkpoint* initial, std::unique_ptr<FolderLock> lock)
    : config_(config),
      options_(options),
      observer_(observer),
      folder_(options.folder),
      lock_(std::move(lock)),
      data_(load_training_data(config, resumed ? resumed : initial)),
      model_(make_model(config, data_.pipeline)),
      updater_(config, model_, options.threads) {
  if (available(config.training.precision) != config.training.precision)
    observer_.message(
        "training.precision: no bf16 products here (AVX512_BF16 through oneDNN); training in f32");
  observer_.message(data_.corpus.report().summary("train", training_filter(config)));
  const nn::ParameterStore& store = model_.parameters();
  if (data::has_split(config.data, data::Split::valid)) {
    validation_text_ = data::load_text(config.data, data::Split::valid, config.seed);
    validation_.emplace(config, *validation_text_, data_.pipeline);
  }
  state_.corpus = digest(data_.corpus);
  if (initial)
    fill_slab(store, initial->ema.empty() ? initial->parameters : initial->ema, store.slab(),
              *config.training.initial_checkpoint, "/gates");  // which a model trained without them has not
  if (updater_.average()) copy(store.slab(), *updater_.average());
  if (resumed) restore(*resumed);
  observer_.message(
      concat("model: ", store.count(), " parameters, vocabulary ", data_.pipeline.source().size(),
             data_.pipeline.shared() ? " shared" : concat(" and ", data_.pipeline.target().size())));
}

void Trainer::restore(const Checkpoint& resumed) {
  const nn::ParameterStore& store = model_.parameters();
  const std::string& path = resumed.path;
  TrainerState read = state_of(resumed);
  require<DataError>(read.corpus == state_.corpus, path,
                     ": the training data are not those that the run began with");
  state_ = std::move(read);
  if (!state_.scheduled) {
    state_.scheduled.emplace();
    for (const CheckpointFile& file : list_checkpoints(folder_.checkpoints()))
      if (file.step <= state_.step) state_.scheduled->push_back(file.step);
  }
  updater_.schedule().restore(state_.schedule);
  fill_slab(store, resumed.parameters, store.slab(), path);
  fill_slab(store, resumed.first_moment, updater_.first_moment(), path);
  fill_slab(store, resumed.second_moment, updater_.second_moment(), path);
  if (updater_.average()) fill_slab(store, resumed.ema, *updater_.average(), path);
  seconds_before_ = state_.seconds;
  saved_step_ = state_.step;
}

void Trainer::open_folder() {
  if (lock_) lock_->require_in_place();
  folder_.create();
  if (!lock_) {
    lock_ = std::make_unique<FolderLock>(folder_.path(), doing);
    require_no_run(folder_);  // another process may have begun one meanwhile
  }
  folder_.open(config::dump(config_));
  set_aside_newer(folder_.checkpoints(), saved_step_, observer_);
  if (saved_step_ >= 0)
    remove_old_checkpoints(folder_.checkpoints(), state_);  // what a killed process did not
  folder_.cut_log(state_.step);
  log_.emplace(folder_.log());
}

std::optional<StopReason> Trainer::limit_reached() const {
  const TrainingConfig& t = config_.training;
  if (t.max_steps && state_.step >= *t.max_steps) return StopReason::max_steps;
  if (t.max_epochs && state_.epoch >= *t.max_epochs) return StopReason::max_epochs;
  if (t.max_minutes && state_.seconds >= *t.max_minutes * 60) return StopReason::max_minutes;
  if (t.patience > 0 && state_.validations_without_best >= t.patience) return StopReason::patience;
  return std::nullopt;
}

TrainResult Trainer::run() {
  std::optional<StopReason> reason = limit_reached();
  // First: what cannot be trained leaves no folder behind that looks like a run.
  if (!reason) expect_memory();
  if (!reason && options_.stop_requested()) reason = StopReason::signal;
  open_folder();
  begin_ = Clock::now();
  while (!reason) {
    update(plan()[state_.batch]);
    ++state_.batch;
    const bool epoch_ended = state_.batch == plan().size();
    if (epoch_ended) {
      ++state_.epoch;
      state_.batch = 0;
    }
    if (validation_ && config_.training.validate_every.due(state_.step, epoch_ended)) validate();
    state_.seconds = elapsed();
    reason = limit_reached();
    if (!reason && options_.stop_requested()) reason = StopReason::signal;
    ending_ = reason.has_value();
    const bool due = config_.training.checkpoint_every.due(state_.step, epoch_ended);
    if (due || ending_ || state_.is_best(state_.step)) save(due);
  }
  ending_ = true;
  if (saved_step_ != state_.step) save(false);  // of no updates
  log_->close();
  return {state_.step, *reason};
}

/// The batches of the epoch under way.
const data::BatchPlan& Trainer::plan() {
  if (planned_epoch_ == state_.epoch) return plan_;
  planned_epoch_ = state_.epoch;
  plan_ = data::BatchPlan::training(data_.corpus,
                                    std::int64_t{config_.training.batch_tokens} * config_.training.accumulate,
                                    config_.seed, static_cast<std::uint64_t>(planned_epoch_));
  require<FileError>(state_.batch < plan_.size(), folder_.path(), ": the checkpoint to resume from has made ",
                     state_.batch, " updates of an epoch that has ", plan_.size());
  return plan_;
}

/// Of updates, and of what follows them: the file in memory that a checkpoint is before it is written, and the decoding of a
/// validation.
void Trainer::expect_memory() {
  const auto slab = static_cast<std::int64_t>(model_.parameters().slab().bytes());
  const std::int64_t checkpoint = (updater_.average() ? 4 : 3) * slab;
  std::int64_t decoding = 0;
  try {
    if (validation_)
      decoding = validation_->expected_memory(model_, config_.training.decoded_metrics(), options_.threads);
  } catch (const MemoryError&) {
    refuse_memory({});
  }
  if (decoding > 0 && !HeadGates(model_).empty()) decoding += slab;  // see FoldedGates
  const std::int64_t bytes =
      updater_.expected_memory(data_.corpus, plan().largest(data_.corpus), std::max(checkpoint, decoding));
  observer_.message(concat("memory: about ", bytes >> 20, " MiB at the peak, of ", memory_limit() >> 20,
                           " MiB that can be had"));
}

void Trainer::update(std::span<const std::int32_t> pairs) {
  last_ = updater_.run(data_.corpus, pairs, state_.step + 1);
  state_.step = last_.step;
  last_.epoch = state_.epoch + 1;
  last_.seconds = elapsed();
  const std::string figures = diagnostics();
  log([&](RunLog& lines) { lines.step(last_, figures); });
  observer_.step(last_);
}

/// The average stands in for the weights, as it will when decoding.
template <class Work>
auto Trainer::with_decoding_weights(const Work& work) {
  const Tensor& slab = model_.parameters().slab();
  const auto exchange = [&] {
    if (updater_.average())
      std::swap_ranges(slab.as<float>(), slab.as<float>() + slab.size(), updater_.average()->as<float>());
  };
  exchange();
  auto result = [&] {
    const FoldedGates folded(model_);
    return work();
  }();
  exchange();
  return result;
}

std::string Trainer::diagnostics() {
  const auto every = config_.training.diagnostics_every;
  if (!every || !options_.diagnose || state_.step % *every != 0) return "";
  return with_decoding_weights([&] { return options_.diagnose(model_, data_.pipeline); });
}

Figures Trainer::measure() {
  try {
    return with_decoding_weights(
        [&] { return validation_->run(model_, config_.training.decoded_metrics(), updater_.workers()); });
  } catch (const NumbersError& error) {
    throw NumbersError(concat("validation failed at ", circumstances(last_), ": ", error.what(),
                              "; the last checkpoint is unchanged"));
  }
}

void Trainer::validate() {
  const Figures figures = measure();
  const Metric metric = config_.training.best_metric;
  const bool best = state_.record(figures.at(metric), lower_is_better(metric), config_.training.keep_best);
  updater_.schedule().validated(lower_is_better(metric) ? -figures.at(metric) : figures.at(metric));
  log([&](RunLog& lines) { lines.validation(state_.step, figures); });
  observer_.validated(state_.step, figures, best);
}

Checkpoint Trainer::snapshot() const {
  const nn::ParameterStore& store = model_.parameters();
  TrainerState state = state_;
  state.schedule = updater_.schedule().state();
  Checkpoint checkpoint;
  checkpoint.parameters = arrays_of(store, store.slab());
  if (updater_.average()) checkpoint.ema = arrays_of(store, *updater_.average());
  checkpoint.first_moment = arrays_of(store, updater_.first_moment());
  checkpoint.second_moment = arrays_of(store, updater_.second_moment());
  checkpoint.step = state_.step;
  checkpoint.epoch = state_.epoch;
  checkpoint.state = state.dump();
  checkpoint.config = config::dump(config_);
  checkpoint.vocabulary = data_.pipeline.serialize();
  return checkpoint;
}

void Trainer::check_savable() const {
  const nn::ParameterStore& store = model_.parameters();
  require_finite_slab(last_, store, store.slab(), "parameter ");
  if (updater_.average()) require_finite_slab(last_, store, *updater_.average(), "the moving average of ");
  require_finite_slab(last_, store, updater_.first_moment(), "the first moment of ");
  require_finite_slab(last_, store, updater_.second_moment(), "the second moment of ");
}

/// Runs what writes files. Whether it could, where checkpoint.on_error lets training go on without.
template <class Work>
bool Trainer::may_fail(const Work& work) {
  try {
    work();
    return true;
  } catch (const FileError& error) {
    lock_->require_in_place();  // without its folder training cannot go on
    if (ending_ || config_.checkpoint.on_error == OnError::stop) throw;
    observer_.message(concat(error.what(), "; training goes on (checkpoint.on_error)"));
    return false;
  }
}

/// Says only once of lines in a row that they could not be written.
void Trainer::log(const std::function<void(RunLog&)>& write) {
  lock_->require_in_place();
  if (!log_failed_) {
    log_failed_ = !may_fail([&] { write(*log_); });
    return;
  }
  try {
    write(*log_);
    log_failed_ = false;
  } catch (const FileError&) {
    // As before.
  }
}

void Trainer::save(bool due) {
  check_savable();
  const auto scheduled = state_.scheduled;
  state_.checkpoint(due, config_.training.keep_last);
  const std::string path = checkpoint_path(folder_.checkpoints(), state_.step);
  const auto check_folder = [&] { lock_->require_in_place(); };
  const bool saved = may_fail([&] {
    write_checkpoint(path, snapshot(), check_folder);
    saved_step_ = state_.step;
    observer_.saved(path);
    log_->sync();
    check_folder();
    remove_old_checkpoints(folder_.checkpoints(), state_);
  });
  // The older ones stay instead.
  if (!saved && saved_step_ != state_.step) state_.scheduled = scheduled;
}

}  // namespace

TrainResult train(const Config& config, const TrainOptions& options, Observer& observer) {
  const RunFolder folder(options.folder);
  if (!options.resume) require_no_run(folder);
  std::unique_ptr<FolderLock> lock;
  if (folder.exists()) lock = std::make_unique<FolderLock>(folder.path(), doing);
  std::optional<Checkpoint> resumed, initial;
  if (options.resume) resumed = resume_point(config, folder, observer);
  if (!resumed && config.training.initial_checkpoint) initial = initial_checkpoint(config, observer);
  Trainer trainer(config, options, observer, resumed ? &*resumed : nullptr, initial ? &*initial : nullptr,
                  std::move(lock));
  resumed.reset();
  initial.reset();
  return trainer.run();
}

}  // namespace polyhead::train
