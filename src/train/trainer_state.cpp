#include "trainer_state.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "digest.h"
#include "polyhead/core/error.h"

namespace polyhead::train {

using nlohmann::json;

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

TrainerState TrainerState::parse(const std::string& text, const std::string& path) {
  const auto count = [&](const json& value) {
    constexpr std::int64_t most = 1'000'000'000'000'000;
    require<FileError>(value.is_number_integer() && value >= 0 && value <= most, path,
                       ": /trainer/state cannot be read: ", value.dump().substr(0, 40),
                       ", expected an integer of 0 to ", most);
    return value.get<std::int64_t>();
  };
  try {
    const json j = json::parse(text);
    TrainerState state{.step = count(j.at("step")),
                       .epoch = count(j.at("epoch")),
                       .batch = count(j.at("batch")),
                       .seconds = j.at("seconds"),
                       .best = {},
                       .scheduled = {},
                       .validations_without_best = count(j.at("validations_without_best")),
                       .schedule = {},
                       .corpus = j.at("corpus")};
    for (const json& s : j.at("best")) state.best.push_back({count(s.at("step")), s.at("score")});
    if (const auto found = j.find("scheduled"); found != j.end() && !found->is_null()) {
      state.scheduled.emplace();
      for (const json& step : *found) state.scheduled->push_back(count(step));
    }
    const json& s = j.at("schedule");
    if (!s.at("best_score").is_null()) state.schedule.best_score = s.at("best_score");
    state.schedule.validations_since_best = count(s.at("validations_since_best"));
    state.schedule.factor = s.at("factor");
    return state;
  } catch (const json::exception& error) {
    throw FileError(concat(path, ": /trainer/state cannot be read: ", error.what()));
  }
}

std::string digest(const data::ParallelCorpus& corpus) {
  Sha256 digest;
  for (std::int32_t i = 0; i < corpus.size(); ++i)
    for (const auto sentence : {corpus.source(i), corpus.target(i)}) digest.add(std::as_bytes(sentence));
  return digest.text();
}

}  // namespace polyhead::train
