#include <algorithm>
#include <cmath>
#include <map>
#include <set>

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
using Seeds = std::vector<const Measured*>;

/// What takes the same draws: whose sentences seeds have, and how many each.
using Shape = std::pair<metrics::SentencesOf, std::vector<std::size_t>>;

Shape shape_of(const Seeds& seeds) {
  Shape shape{metrics::SentencesOf::all_seeds, {}};
  for (const Measured* seed : seeds) {
    if (seed->digest != seeds.front()->digest) shape.first = metrics::SentencesOf::each_seed;
    shape.second.push_back(seed->statistics.sentences());
  }
  return shape;
}

/// An interval to be made: of the difference where there is a baseline.
struct Wanted {
  Figure* figure;
  Seeds system, baseline;
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
        if (stopped()) return stopped_text;
        try {
          want(group, figure);
        } catch (const Error& error) {
          miss(figure, error);
        }
      }
    for (const auto& [shape, wanted] : wanted_) {
      if (stopped()) return stopped_text;
      try {
        make(shape.first, wanted);
      } catch (const Error& error) {
        for (const Wanted& w : wanted) miss(*w.figure, error);
      }
    }
    return without_.empty() ? ""
                            : concat(without_.size(), without_.size() == 1 ? " figure" : " figures",
                                     " without a bootstrap interval: ", reason_);
  }

 private:
  using BySeed = std::map<std::uint64_t, const Measured*>;
  static constexpr const char* stopped_text =
      "stopped before all bootstrap intervals were made; the same command makes them";

  bool stopped() const { return stop_ && stop_(); }
  void miss(const Figure& figure, const Error& error) {
    if (without_.empty()) reason_ = error.what();
    without_.insert(&figure);
  }

  void want(const Group& group, Figure& figure) {
    const BySeed own = by_seed(group.point, group.control, figure);
    Seeds all;
    for (const auto& [seed, of_seed] : own) all.push_back(of_seed);
    wanted_[shape_of(all)].push_back({&figure, all, {}});
    if (!figure.difference) return;
    const BySeed base = by_seed(*baseline_of(experiment_, group.point), group.control, figure);
    Seeds before, after;
    for (const auto& [seed, of_seed] : own) {
      const auto found = base.find(seed);
      if (found == base.end()) continue;
      const Measured& of_base = *found->second;
      require<FileError>(of_base.digest == of_seed->digest &&
                             of_base.statistics.sentences() == of_seed->statistics.sentences(),
                         cells_, ": of seed ", seed, ", the sentences of ", figure.split,
                         " are not the baseline's");
      before.push_back(&of_base);
      after.push_back(of_seed);
    }
    wanted_[shape_of(after)].push_back({&figure, after, before});
  }

  /// All of one shape, whose systems take the same draws.
  void make(metrics::SentencesOf of, const std::vector<Wanted>& wanted) const {
    std::map<Seeds, std::size_t> places;
    std::vector<std::vector<const SentenceStatistics*>> systems;
    for (const Wanted& w : wanted)
      for (const Seeds& seeds : {w.system, w.baseline}) {
        if (seeds.empty() || !places.emplace(seeds, systems.size()).second) continue;
        systems.emplace_back();
        for (const Measured* seed : seeds) systems.back().push_back(&seed->statistics);
      }
    const std::vector<metrics::DrawnScores> scores =
        metrics::hierarchical_bootstrap(systems, of, resampling_);
    for (const Wanted& w : wanted) {
      const metrics::DrawnScores& system = scores[places.at(w.system)];
      if (w.baseline.empty())
        w.figure->bootstrap = system.mean();
      else
        w.figure->difference_bootstrap = (system - scores[places.at(w.baseline)]).mean();
    }
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
  std::map<Shape, std::vector<Wanted>> wanted_;
  std::set<const Figure*> without_;
  std::string reason_;
};

}  // namespace

std::string add_bootstrap(std::vector<Group>& groups, const Experiment& experiment, const Plan& plan,
                          const Results& results, const std::string& folder, int threads,
                          const std::function<bool()>& stop) {
  return Bootstrap(experiment, plan, results, folder + "/cells", threads, stop).run(groups);
}

}  // namespace polyhead::experiment
