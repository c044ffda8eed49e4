// Scores against sacreBLEU's own, over the cases of tests/data/sacrebleu_cases.json.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "polyhead/core/version.h"
#include "polyhead/metrics/metrics.h"

namespace polyhead::metrics {
namespace {

using nlohmann::json;
using Lines = std::vector<std::string>;

const json& data() {
  static const json cases = json::parse(std::ifstream(POLYHEAD_TEST_DATA "/sacrebleu_cases.json"));
  return cases;
}

std::vector<json> cases_of(const std::string& metric) {
  std::vector<json> result;
  for (const json& one : data().at("cases"))
    if (one.at("metric") == metric) result.push_back(one);
  return result;
}

Score corpus_score(const json& one, const Options& options) {
  const json& set = data().at("sets").at(one.at("set").get<std::string>());
  return corpus(one.at("metric"), set.at("hypothesis").get<Lines>(),
                set.at("references").get<std::vector<Lines>>(), options);
}

double detail(const Score& score, const std::string& name) {
  for (const auto& [key, value] : score.details)
    if (key == name) return value;
  ADD_FAILURE() << "no detail " << name;
  return 0;
}

void expect_equal(double actual, const json& expected, const json& where) {
  const double value = expected.get<double>();
  EXPECT_NEAR(actual, value, 1e-13 * std::max(1.0, std::abs(value))) << where;
}

void expect_signature(const Score& score, const json& one) {
  std::string expected = one.at("signature");
  const std::string placeholder = "VERSION";
  expected.replace(expected.find(placeholder), placeholder.size(), std::string("polyhead-") + version);
  EXPECT_EQ(score.signature, expected);
}

TEST(SacreBleu, Bleu) {
  const std::vector<json> cases = cases_of("bleu");
  ASSERT_EQ(cases.size(), 216u);
  for (const json& one : cases) {
    Options options;
    options.tokenize = one.at("tokenize");
    options.smooth = one.at("smooth");
    if (!one.at("smooth_value").is_null()) options.smooth_value = one.at("smooth_value").get<double>();
    options.lowercase = one.at("lowercase");
    const Score score = corpus_score(one, options);
    expect_equal(score.score, one.at("score"), one);
    for (std::size_t n = 0; n < 4; ++n)
      expect_equal(score.details[n].second, one.at("precisions").at(n), one);
    expect_equal(detail(score, "brevity_penalty"), one.at("bp"), one);
    expect_equal(detail(score, "hypothesis_length"), one.at("sys_len"), one);
    expect_equal(detail(score, "reference_length"), one.at("ref_len"), one);
    expect_signature(score, one);
  }
}

TEST(SacreBleu, Chrf) {
  const std::vector<json> cases = cases_of("chrf");
  ASSERT_EQ(cases.size(), 24u);
  for (const json& one : cases) {
    Options options;
    options.word_order = one.at("word_order");
    options.lowercase = one.at("lowercase");
    const Score score = corpus_score(one, options);
    expect_equal(score.score, one.at("score"), one);
    expect_signature(score, one);
  }
}

TEST(SacreBleu, Ter) {
  const std::vector<json> cases = cases_of("ter");
  ASSERT_EQ(cases.size(), 12u);
  for (const json& one : cases) {
    Options options;
    options.case_sensitive = one.at("case_sensitive");
    const Score score = corpus_score(one, options);
    expect_equal(score.score, one.at("score"), one);
    expect_equal(detail(score, "edits"), one.at("num_edits"), one);
    expect_equal(detail(score, "reference_length"), one.at("ref_length"), one);
    expect_signature(score, one);
  }
}

TEST(SacreBleu, Sentences) {
  const std::vector<json> cases = cases_of("sentence");
  ASSERT_EQ(cases.size(), 52u);
  for (const json& one : cases) {
    const json& set = data().at("sets").at(one.at("set").get<std::string>());
    const std::size_t index = one.at("index");
    Lines references;
    for (const json& stream : set.at("references")) references.push_back(stream.at(index));
    for (const char* metric : {"bleu", "chrf", "ter"})
      expect_equal(sentence(metric, set.at("hypothesis").at(index), references).score, one.at(metric), one);
  }
}

}  // namespace
}  // namespace polyhead::metrics
