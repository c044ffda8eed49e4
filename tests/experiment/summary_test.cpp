#include "polyhead/experiment/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "experiment/experiments.h"

namespace polyhead::testing {
namespace {

using experiment::Figure;
using experiment::Group;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two points with three seeds: in all, and in two phenomena.
struct Summarised {
  Folder folder;
  experiment::Experiment definition;
  std::vector<Group> groups;

  explicit Summarised(const std::string& evaluation)
      : definition(
            small_experiment("grid: {model.heads: [1, 4]}\nseeds: [5, 6, 7]\nbaseline: {model.heads: 4}\n"
                             "evaluation: {metrics: [exact_match]" +
                             evaluation + "}\n")) {
    const experiment::Plan plan = experiment::plan(definition);
    experiment::Results results(folder.path);
    const std::vector<double> all{70, 71.5, 72, 70.5, 71, 72.5}, negation{40, 41, 43, 50, 52, 53};
    for (std::size_t i = 0; i < plan.cells.size(); ++i) {
      const auto measure = [](double value, std::optional<std::string> phenomenon) {
        return experiment::Measure{
            .split = "test", .metric = "exact_match", .phenomenon = phenomenon, .value = value};
      };
      results.put(plan.cells[i].id, {.measures = {measure(all[i], {}), measure(negation[i], "negation"),
                                                  measure(all[i] + 10, "tense")}});
    }
    groups = summarize(definition, plan, results);
  }
  std::string text() const { return summary_text(definition, groups, ""); }
};

std::string squeezed(const std::string& text) {
  std::string result;
  std::unique_copy(text.begin(), text.end(), std::back_inserter(result),
                   [](char a, char b) { return a == ' ' && b == ' '; });
  return result;
}

TEST(Summary, HasATableOfPhenomenaAgainstPoints) {
  const Summarised s("");
  const std::string text = squeezed(s.text());
  EXPECT_THAT(text, HasSubstr("\nexact_match by phenomenon\n"
                              "phenomenon split model.heads 1 difference p (BH) model.heads 4\n"));
  // Differences of -10, -11, -10: t = 31, two degrees of freedom; of -0.5, 0.5, -0.5: t = 0.5. Two tests.
  EXPECT_THAT(text, HasSubstr("\nnegation test 41.33 -10.33 0.0021 51.67\n"));
  EXPECT_THAT(text, HasSubstr("\ntense test 81.17 -0.17 0.6667 81.33\n"));
  EXPECT_THAT(text, HasSubstr("p (BH): the same of phenomena"));
  EXPECT_THAT(text, Not(HasSubstr("TOST")));
}

TEST(Summary, TestsThatThereIsNoDifference) {
  const Summarised s(", equivalence: {exact_match: 2}");
  const Figure& figure = s.groups[0].figures[0];
  ASSERT_TRUE(figure.equivalence);
  // The mean is -1/6, its standard error 1/3: t = (2 - 1/6)*3 = 5.5; P(T > t) = 1/2 - t/(2*sqrt(2 + t^2)).
  EXPECT_NEAR(figure.equivalence->p, 0.5 - 5.5 / (2 * std::sqrt(2 + 5.5 * 5.5)), 1e-9);
  EXPECT_EQ(figure.equivalence->pairs, 3);
  EXPECT_FALSE(s.groups[1].figures[0].equivalence);  // the baseline
  const std::string text = squeezed(s.text());
  EXPECT_THAT(text, HasSubstr(" pairs margin p (TOST)\n"));
  EXPECT_THAT(text, HasSubstr(" 3 2 0.0158\n"));
  EXPECT_THAT(text, HasSubstr("p (TOST): of a difference of the margin or more, either way"));
}

/// The last of three seeds failed before it had a speed; the other point has nothing yet.
TEST(Summary, HasMeanCostsAndNoneOfWhatHasNoResult) {
  const Folder folder;
  const auto definition = small_experiment("grid: {model.heads: [1, 4]}\nseeds: [5, 6, 7]\n");
  const experiment::Plan plan = experiment::plan(definition);
  experiment::Results results(folder.path);
  results.put(plan.cells[0].id, {.costs = {1000, 2e6, 300}, .learning_rate = 0.5, .tokens_per_second = 900});
  results.put(plan.cells[1].id, {.costs = {1003, 2e6, 300}, .learning_rate = 0.5, .tokens_per_second = 700});
  results.put(plan.cells[2].id,
              {.status = experiment::Status::failed, .costs = {1002, 2e6, 300}, .learning_rate = 0.5});
  const std::string text = squeezed(summary_text(definition, summarize(definition, plan, results), ""));
  EXPECT_THAT(text, HasSubstr("\nnone model.heads 1 1002 2 M 300 800 0.5 2/3 0 1\n"));
  EXPECT_THAT(text, HasSubstr("\nnone model.heads 4 - - - - - 0/3 0 0\n"));
}

/// P(T > t) with two degrees of freedom.
double beyond(double t) { return 0.5 - t / (2 * std::sqrt(2 + t * t)); }

/// Differences of -0.5, 0.5, -0.5 in all, of -10, -11, -10 in the phenomenon; the standard error of both means is 1/3.
TEST(Summary, IsThereForProgramsToo) {
  const Summarised s(", equivalence: {exact_match: 2}");
  std::istringstream lines(summary_jsonl(s.groups));
  std::vector<nlohmann::json> points;
  for (std::string line; std::getline(lines, line);) points.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(points.size(), 2U * 3);
  const nlohmann::json &few = points[0], &negation = points[1], &many = points[3];
  EXPECT_EQ(few["grid"], nlohmann::json({{"model.heads", 1}}));
  EXPECT_EQ(few["control"], "none");
  EXPECT_EQ(few["split"], "test");
  EXPECT_EQ(few["metric"], "exact_match");
  EXPECT_EQ(few["phenomenon"], nullptr);
  EXPECT_EQ(few["seeds"], 3);
  EXPECT_EQ(few["bootstrap"], nullptr);
  EXPECT_NEAR(few["mean"], 71.16666667, 1e-8);
  const nlohmann::json& difference = few["difference"];
  EXPECT_NEAR(difference["mean"], -0.16666667, 1e-8);
  EXPECT_NEAR(difference["p"], 2 * beyond(0.5), 1e-9);
  EXPECT_NEAR(difference["equivalence"]["p"], beyond(5.5), 1e-9);
  EXPECT_NEAR(difference["equivalence"]["low"], -1.13999519, 1e-8);
  EXPECT_NEAR(difference["equivalence"]["high"], 0.80666186, 1e-8);
  EXPECT_EQ(difference["equivalence"]["margin"], 2);
  EXPECT_EQ(negation["phenomenon"], "negation");
  EXPECT_NEAR(negation["difference"]["equivalence"]["p"], beyond(-25), 1e-9);
  EXPECT_EQ(many["difference"], nullptr);  // the baseline
}

}  // namespace
}  // namespace polyhead::testing
