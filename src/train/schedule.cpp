#include "polyhead/train/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "polyhead/config/problems.h"
#include "polyhead/core/error.h"

namespace polyhead::train {
namespace {

double inverse_sqrt(const ScheduleConfig& c, const ScheduleInput& in) {
  return c.learning_rate * std::sqrt(std::max(1.0, static_cast<double>(c.warmup_steps)) / in.step);
}

double noam(const ScheduleConfig& c, const ScheduleInput& in) {
  const double rising =
      in.step * std::pow(static_cast<double>(c.warmup_steps), -1.5);  // infinite without warm-up
  return c.learning_rate / std::sqrt(static_cast<double>(in.d_model)) *
         std::min(1 / std::sqrt(in.step), rising);
}

/// How much of the way from the end of the warm-up to decay_steps is done, 0 to 1.
double progress(const ScheduleConfig& c, double step) {
  const auto warmup = static_cast<double>(c.warmup_steps);
  return std::min(1.0, (step - warmup) / (static_cast<double>(*c.decay_steps) - warmup));
}

double cosine(const ScheduleConfig& c, const ScheduleInput& in) {
  const double t = progress(c, in.step);
  return std::lerp(c.min_learning_rate, c.learning_rate, (1 + std::cos(std::numbers::pi * t)) / 2);
}

double linear(const ScheduleConfig& c, const ScheduleInput& in) {
  return std::lerp(c.learning_rate, c.min_learning_rate, progress(c, in.step));
}

double constant(const ScheduleConfig& c, const ScheduleInput&) { return c.learning_rate; }

double plateau(const ScheduleConfig& c, const ScheduleInput& in) {
  return std::max(c.min_learning_rate, c.learning_rate * in.factor);
}

constexpr std::array<ScheduleRow, 6> rows{{
    {.name = "inverse_sqrt", .rate = inverse_sqrt},
    {.name = "noam", .rate = noam, .warms_up_itself = true},
    {.name = "cosine", .rate = cosine, .ends = true, .uses_minimum = true},
    {.name = "linear", .rate = linear, .ends = true, .uses_minimum = true},
    {.name = "constant", .rate = constant},
    {.name = "plateau", .rate = plateau, .uses_minimum = true},
}};

const ScheduleRow* find(const std::string& name) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const ScheduleRow& r) { return r.name == name; });
  return row == rows.end() ? nullptr : row;
}

/// Calls report(key, message) for each rule that the configuration breaks.
template <class Report>
void check(const ScheduleConfig& c, const Report& report) {
  const ScheduleRow* row = find(c.schedule);
  if (!row) return report("schedule", concat('"', c.schedule, "\", expected one of ", schedule_names()));
  if (row->ends && !c.decay_steps)
    report("decay_steps", concat("missing, schedule ", c.schedule, " ends there"));
  if (row->ends && c.decay_steps && *c.decay_steps <= c.warmup_steps)
    report("decay_steps", concat(*c.decay_steps, ", expected more than warmup_steps ", c.warmup_steps));
  if (row->uses_minimum && c.min_learning_rate > c.learning_rate)
    report("min_learning_rate",
           concat(c.min_learning_rate, ", expected at most learning_rate ", c.learning_rate));
}

}  // namespace

std::span<const ScheduleRow> schedules() { return rows; }

std::string schedule_names() {
  std::string names;
  for (const ScheduleRow& row : rows) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

void ScheduleConfig::validate(config::Problems& problems) const {
  check(*this, [&](const char* key, const std::string& message) { problems.add(key, message); });
}

Schedule::Schedule(const ScheduleConfig& config, std::int64_t d_model)
    : config_(config), d_model_(d_model), row_(find(config.schedule)) {
  check(config, [](const char* key, const std::string& message) { throw Error(concat(key, ": ", message)); });
  require(d_model >= 1, "schedule: d_model ", d_model, ", expected at least 1");
}

double Schedule::rate(std::int64_t step) const {
  require(step >= 1, "learning rate of update ", step, ", expected at least 1");
  const auto s = static_cast<double>(step), warmup = static_cast<double>(config_.warmup_steps);
  if (!row_->warms_up_itself && s < warmup) return config_.learning_rate * s / warmup;
  return row_->rate(config_, {d_model_, s, state_.factor});
}

void Schedule::validated(double score) {
  if (score > state_.best_score) {
    state_.best_score = score;
    state_.validations_since_best = 0;
  } else if (++state_.validations_since_best >= config_.plateau_patience) {
    state_.factor *= config_.plateau_factor;
    state_.validations_since_best = 0;
  }
}

}  // namespace polyhead::train
