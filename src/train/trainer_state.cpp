#include "trainer_state.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "digest.h"
#include "polyhead/core/error.h"

namespace polyhead::train {

using nlohmann::json;

namespace {

template <class... Expected>
[[noreturn]] void refuse(const char* key, const json& value, const Expected&... expected) {
  throw FileError(
      concat("/trainer/state: ", key, ' ', value.dump().substr(0, 40), ", expected ", expected...));
}

std::int64_t count_of(const char* key, const json& value, std::int64_t most = 1'000'000'000'000'000) {
  if (!value.is_number_integer() || value < 0 || value > most)
    refuse(key, value, "an integer of 0 to ", most);
  return value.get<std::int64_t>();
}

double not_negative(const char* key, const json& value) {
  if (!value.is_number() || value < 0) refuse(key, value, "a number of at least 0");
  return value.get<double>();
}

/// Steps up to `last`, ascending.
std::vector<std::int64_t> steps_of(const char* key, const json& value, std::int64_t last) {
  std::vector<std::int64_t> steps;
  for (const json& step : value) steps.push_back(count_of(key, step, last));
  if (!std::is_sorted(steps.begin(), steps.end())) refuse(key, value, "ascending steps");
  return steps;
}

}  // namespace

bool TrainerState::record(double score, bool lower_is_better, int keep) {
  const auto better = [&](const Scored& a, const Scored& b) {
    return lower_is_better ? a.score < b.score : a.score > b.score;
  };
  const Scored scored{step, score};
  const bool is_new_best = best.empty() || better(scored, best.front());
  validations_without_best = is_new_best ? 0 : validations_without_best + 1;
  // Behind its equals: the earlier of two equal scores is the better.
  best.insert(std::upper_bound(best.begin(), best.end(), scored, better), scored);
  if (best.size() > static_cast<std::size_t>(keep)) best.resize(static_cast<std::size_t>(keep));
  return is_new_best;
}

bool TrainerState::is_best(std::int64_t of) const {
  return std::any_of(best.begin(), best.end(), [&](const Scored& s) { return s.step == of; });
}

void TrainerState::checkpoint(bool due, int keep) {
  if (!scheduled) scheduled.emplace();
  if (due) scheduled->push_back(step);
  const auto excess = static_cast<std::ptrdiff_t>(scheduled->size()) - keep;
  if (excess > 0) scheduled->erase(scheduled->begin(), scheduled->begin() + excess);
}

bool TrainerState::is_scheduled(std::int64_t of) const {
  return !scheduled || std::find(scheduled->begin(), scheduled->end(), of) != scheduled->end();
}

std::string TrainerState::dump() const {
  json scores = json::array();
  for (const Scored& s : best) scores.push_back({{"step", s.step}, {"score", s.score}});
  return json{{"step", step},
              {"epoch", epoch},
              {"batch", batch},
              {"seconds", seconds},
              {"best", scores},
              {"scheduled", scheduled ? json(*scheduled) : json()},
              {"validations_without_best", validations_without_best},
              {"schedule",
               {{"factor", schedule.factor},
                {"best_score", std::isfinite(schedule.best_score) ? json(schedule.best_score) : json()},
                {"validations_since_best", schedule.validations_since_best}}},
              {"corpus", corpus}}
      .dump();
}

TrainerState TrainerState::parse(const std::string& text) {
  try {
    const json j = json::parse(text), &s = j.at("schedule"), &factor = s.at("factor");
    const auto count_at = [&](const char* key) { return count_of(key, j.at(key)); };
    if (!factor.is_number() || factor < 0 || factor > 1) refuse("factor", factor, "a number of 0 to 1");
    TrainerState state{.step = count_at("step"),
                       .epoch = count_at("epoch"),
                       .batch = count_at("batch"),
                       .seconds = not_negative("seconds", j.at("seconds")),
                       .best = {},
                       .scheduled = {},
                       .validations_without_best = count_at("validations_without_best"),
                       .schedule = {},
                       .corpus = j.at("corpus")};
    for (const json& scored : j.at("best"))
      state.best.push_back({count_of("step of best", scored.at("step"), state.step),
                            not_negative("score of best", scored.at("score"))});
    if (const auto found = j.find("scheduled"); found != j.end() && !found->is_null())
      state.scheduled = steps_of("scheduled", *found, state.step);
    if (!s.at("best_score").is_null()) state.schedule.best_score = s.at("best_score");
    state.schedule.validations_since_best =
        count_of("validations_since_best", s.at("validations_since_best"));
    state.schedule.factor = factor;
    return state;
  } catch (const json::exception&) {
    throw FileError("/trainer/state: a field is missing or not of the type that training writes");
  }
}

TrainerState state_of(const Checkpoint& checkpoint) {
  try {
    return TrainerState::parse(checkpoint.state);
  } catch (const FileError& error) {
    throw FileError(concat(checkpoint.path, ": ", error.what()));
  }
}

std::string digest(const data::ParallelCorpus& corpus) {
  Sha256 digest;
  for (std::int32_t i = 0; i < corpus.size(); ++i)
    for (const auto sentence : {corpus.source(i), corpus.target(i)}) digest.add(std::as_bytes(sentence));
  return digest.text();
}

}  // namespace polyhead::train
