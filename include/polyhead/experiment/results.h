#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "polyhead/experiment/cells.h"

/// The results of an experiment: results.jsonl, one row for each cell, split, metric and phenomenon.
namespace polyhead::experiment {

enum class Status {
  finished,
  diverged,  ///< a loss or gradient was not finite
  failed     ///< anything else: to be tried again
};
config::EnumNames<Status> enum_names(Status);

/// One figure.
struct Measure {
  std::string split = {}, metric = {};
  std::optional<std::string> phenomenon = {};  ///< null: all sentences of the split
  std::optional<double> value = {};            ///< null where it is not finite
  std::optional<double> low = {}, high = {};   ///< 95% interval over the sentences, where evaluate gives one
  std::optional<std::int64_t> n = {};          ///< sentences, or probes
  std::optional<int> limit = {};               ///< EvaluationPlan::limit it was measured with
};

/// What a model costs.
struct Costs {
  std::int64_t parameters = 0;
  double flops_per_token = 0;  ///< see Workload
  double score_bytes = 0;      ///< see Workload
};

/// What became of a run.
struct Outcome {
  Status status = Status::finished;
  std::optional<std::string> message = {};  ///< the last line of what the failed program said
  Costs costs = {};
  double learning_rate = 0;
  std::int64_t step = 0;
  double tokens_per_second = 0;  ///< target tokens a second in training; this and what follows is measured
  double train_seconds = 0, evaluate_seconds = 0;
  std::vector<Measure> measures = {};
};

/// A line of results.jsonl.
struct Row {
  std::string cell = {}, base = {};
  std::vector<std::pair<std::string, std::string>> grid = {};  ///< key and value, the value as JSON
  std::string control = {};
  std::optional<double> trial = {};
  std::uint64_t seed = 0;
  std::optional<Measure> measure = {};  ///< null of a cell without any
  Outcome outcome = {};                 ///< without measures
};

/// The rows of a file; none when there is no such file. Throws FileError naming the line that cannot be read.
std::vector<Row> read_rows(const std::string& path);
std::string to_jsonl(const std::vector<Row>& rows);
/// With a column for each key of any row's grid.
std::string to_csv(const std::vector<Row>& rows);

/// Outcomes by cell id, and the rows of cells that the experiment no longer has.
class Results {
 public:
  /// Reads DIR/results.jsonl.
  explicit Results(std::string folder);

  const Outcome* find(const std::string& id) const;
  void put(const std::string& id, Outcome outcome);

  /// Whether nothing is left to be done for a cell: it diverged, or has all figures that are asked for. A trial needs
  /// validation alone.
  bool is_complete(const Cell& cell, const EvaluationPlan& evaluation) const;
  /// The splits that a cell has still to be evaluated on.
  std::vector<std::string> missing_splits(const Cell& cell, const EvaluationPlan& evaluation) const;
  /// See plan().
  TrialScores trial_scores() const;

  /// The rows of `cells` in their order, those of a cell by the order of the evaluation's splits and metrics, then
  /// phenomena; last those of other cells as the file had them.
  std::vector<Row> rows(const std::vector<Cell>& cells, const std::string& base,
                        const EvaluationPlan& evaluation) const;
  /// Replaces DIR/results.jsonl and DIR/results.csv. Throws FileError.
  void write(const std::vector<Row>& rows) const;

  /// Ids in the file that none of `cells` has: of another base, and of this base.
  struct Others {
    std::vector<std::string> of_another_base, of_this_base;
  };
  Others others(const std::vector<Cell>& cells, const std::string& base) const;

 private:
  std::string folder_;
  std::vector<Row> read_;
  std::map<std::string, Outcome> outcomes_;
};

}  // namespace polyhead::experiment
