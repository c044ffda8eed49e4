#include <algorithm>
#include <cmath>
#include <map>

#include "groups.h"
#include "polyhead/core/error.h"
#include "polyhead/experiment/sentences.h"
#include "polyhead/metrics/significance.h"
#include "polyhead/train/validation.h"

namespace polyhead::experiment {
namespace {

using metrics::SentenceStatistics;

/// A figure of one cell, sentence by sentence.
struct Measured {
  SentenceStatistics statistics;
  std::uint64_t digest;  ///< of the sentences
};
/// The same of several seeds.
struct OverSeeds {
  std::vector<SentenceStatistics> statistics;
  std::vector<std::uint64_t> digests;

  void add(const Measured& of_seed) {
    statistics.push_back(of_seed.statistics);
    digests.push_back(of_seed.digest);
  }
  metrics::SentencesOf sentences() const {
    return std::equal(digests.begin() + 1, digests.end(), digests.begin()) ? metrics::SentencesOf::all_seeds
                                                                           : metrics::SentencesOf::each_seed;
  }
};

class Bootstrap {
 public:
  Bootstrap(const Experiment& experiment, const Plan& plan, const Results& results, std::string cells,
            int threads, const std::function<bool()>& stop)
      : experiment_(experiment), plan_(plan), results_(results), cells_(std::move(cells)), stop_(stop) {
    resampling_.draws = bootstrap_draws;
    resampling_.threads = threads;
  }

  std::string run(std::vector<Group>& groups) {
    const std::vector<std::string> splits = splits_of(experiment_.config.evaluation);
    for (Group& group : groups)
      for (Figure& figure : group.figures) {
        if (figure.phenomenon || figure.split != splits.front() || figure.over_seeds.seeds < 2) continue;
        if (stop_ && stop_())
          return "stopped before all bootstrap intervals were made; the same command makes them";
        try {
          add(group, figure);
        } catch (const Error& error) {
          if (without_++ == 0) reason_ = error.what();
        }
      }
    return without_ == 0 ? ""
                         : concat(without_, without_ == 1 ? " figure" : " figures",
                                  " without a bootstrap interval: ", reason_);
  }

 private:
  using BySeed = std::map<std::uint64_t, const Measured*>;

  void add(const Group& group, Figure& figure) {
    const BySeed own = by_seed(group.point, group.control, figure);
    OverSeeds all;
    for (const auto& [seed, of_seed] : own) all.add(*of_seed);
    figure.bootstrap = metrics::hierarchical_bootstrap(all.statistics, all.sentences(), resampling_);
    if (!figure.difference) return;
    const BySeed base = by_seed(*baseline_of(experiment_, group.point), group.control, figure);
    OverSeeds before, after;
    for (const auto& [seed, of_seed] : own) {
      const auto found = base.find(seed);
      if (found == base.end()) continue;
      require<FileError>(found->second->digest == of_seed->digest, cells_, ": of seed ", seed,
                         ", the sentences of ", figure.split, " are not the baseline's");
      before.add(*found->second);
      after.add(*of_seed);
    }
    figure.difference_bootstrap =
        metrics::hierarchical_difference(before.statistics, after.statistics, after.sentences(), resampling_);
  }

  BySeed by_seed(const Point& point, Control control, const Figure& figure) {
    BySeed result;
    for (const Cell& cell : plan_.cells) {
      const Outcome* outcome = is_of(cell, point, control) ? results_.find(cell.id) : nullptr;
      if (outcome == nullptr) continue;
      const double value = value_of(*outcome, figure, experiment_.config.evaluation.limit);
      if (std::isfinite(value)) result[cell.seed] = &measured(cell, figure, value);
    }
    return result;
  }

  const Measured& measured(const Cell& cell, const Figure& figure, double value) {
    const auto key = std::make_pair(cell.id, figure.metric);
    if (const auto found = measured_.find(key); found != measured_.end()) return found->second;
    const Sentences& sentences = sentences_of(cell, figure.split);
    Measured result{sentences.statistics(figure.metric, train::metric_options(cell.config.evaluation)),
                    sentences.digest()};
    // A loss may be rounded otherwise; other sentences, or another model, are farther off.
    const double score = result.statistics.score();
    require<FileError>(std::abs(score - value) <= 1e-4 * std::max(1., std::abs(value)), sentences.path(),
                       ": gives ", figure.metric, ' ', score, ", but results.jsonl has ", value);
    return measured_.emplace(key, std::move(result)).first->second;
  }

  const Sentences& sentences_of(const Cell& cell, const std::string& split) {
    const auto found = sentences_.find(cell.id);
    if (found != sentences_.end()) return found->second;
    return sentences_
        .emplace(cell.id, Sentences(concat(cells_, '/', cell.id, "/sentences-", split, ".jsonl")))
        .first->second;
  }

  const Experiment& experiment_;
  const Plan& plan_;
  const Results& results_;
  std::string cells_;
  const std::function<bool()>& stop_;
  metrics::Resampling resampling_;
  std::map<std::string, Sentences> sentences_;
  std::map<std::pair<std::string, std::string>, Measured> measured_;
  std::int64_t without_ = 0;
  std::string reason_;
};

}  // namespace

std::string add_bootstrap(std::vector<Group>& groups, const Experiment& experiment, const Plan& plan,
                          const Results& results, const std::string& folder, int threads,
                          const std::function<bool()>& stop) {
  return Bootstrap(experiment, plan, results, folder + "/cells", threads, stop).run(groups);
}

}  // namespace polyhead::experiment
