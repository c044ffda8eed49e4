#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "polyhead/config/constraint.h"

namespace polyhead::config {
class Problems;
}

namespace polyhead::train {

/// The names of schedules(), separated by commas.
std::string schedule_names();

/// The learning rate's part of the `training` section.
struct ScheduleConfig {
  double learning_rate = 1e-3;
  std::string schedule = "inverse_sqrt";
  std::int64_t warmup_steps = 4000;
  std::optional<std::int64_t> decay_steps;
  double min_learning_rate = 0;
  double plateau_factor = 0.5;
  int plateau_patience = 3;
  bool operator==(const ScheduleConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("learning_rate", learning_rate, "the largest learning rate; for noam its factor", config::at_least(0));
    v("schedule", schedule, schedule_names());
    v("warmup_steps", warmup_steps, "steps over which the rate first rises linearly from 0",
      config::at_least(0));
    v("decay_steps", decay_steps, "the step at which cosine and linear reach their end", config::at_least(1));
    v("min_learning_rate", min_learning_rate, "where cosine, linear and plateau end", config::at_least(0));
    v("plateau_factor", plateau_factor, "plateau: what the rate is multiplied by", config::above(0),
      config::below(1));
    v("plateau_patience", plateau_patience,
      "plateau: validations in a row without a better score before that", config::at_least(1));
  }
  /// `schedule` is one of schedules(), cosine and linear have `decay_steps` beyond `warmup_steps`, and
  /// `min_learning_rate` is at most `learning_rate` where it is used.
  void validate(config::Problems& problems) const;
};

/// What a rate depends on besides the configuration.
struct ScheduleInput {
  std::int64_t d_model;
  double step;    ///< of the update, 1, 2, ...
  double factor;  ///< of plateau's state
};

/// One schedule.
struct ScheduleRow {
  const char* name;
  double (*rate)(const ScheduleConfig& config, const ScheduleInput& input);  ///< after the warm-up
  bool warms_up_itself = false;  ///< `rate` holds from the first step
  bool ends = false;             ///< reaches its end at decay_steps
  bool uses_minimum = false;     ///< goes down to min_learning_rate
};

/// Every schedule.
std::span<const ScheduleRow> schedules();

/// The learning rate η of update s. With w = warmup_steps, η₀ = learning_rate, η₁ = min_learning_rate and
/// t = (s − w)/(decay_steps − w), at most 1: η₀·s/w while s < w, for all but noam; else
///   inverse_sqrt  η₀·√(max(w, 1)/s)
///   noam          η₀·d_model^−½·min(s^−½, s·w^−3/2)  (Vaswani et al. 2017, arXiv:1706.03762)
///   cosine        η₁ + (η₀ − η₁)·(1 + cos πt)/2      (Loshchilov & Hutter 2017, arXiv:1608.03983)
///   linear        η₀ + (η₁ − η₀)·t
///   constant      η₀
///   plateau       max(η₁, η₀·φ), φ = 1 at first
class Schedule {
 public:
  /// What plateau remembers; all other schedules are functions of the step alone. Saved with a checkpoint.
  struct State {
    double best_score = -std::numeric_limits<double>::infinity();
    std::int64_t validations_since_best = 0;
    double factor = 1;
    bool operator==(const State&) const = default;
  };

  /// Error when the configuration breaks a rule of ScheduleConfig::validate.
  Schedule(const ScheduleConfig& config, std::int64_t d_model);
  /// η of update `step`; Error when step < 1.
  double rate(std::int64_t step) const;
  /// Tells plateau (others do not mind) the score of a validation, larger is better (give a loss its
  /// negative); NaN is never better. After plateau_patience validations in a row without a new best,
  /// φ <- φ·plateau_factor.
  void validated(double score);
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  ScheduleConfig config_;
  std::int64_t d_model_;
  const ScheduleRow* row_;
  State state_;
};

}  // namespace polyhead::train
