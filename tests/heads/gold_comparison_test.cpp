#include "polyhead/heads/gold_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models.h"
#include "polyhead/data/tasks.h"

namespace polyhead::heads {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

data::DataConfig task(const std::string& name) {
  data::DataConfig config;
  config.task = name;
  config.train_size = 60;
  config.valid_size = 10;
  config.test_size = 120;
  return config;
}

text::TextPipeline pipeline(const data::DataConfig& config, const std::string& kind = "word") {
  text::TokenizerConfig tokenizer;
  tokenizer.kind = kind;
  const data::ParallelText text = data::load_text(config, data::Split::train, 1);
  return text::TextPipeline::learn(tokenizer, false, text.source, text.target);
}

/// The first `limit` pairs (0: all) of a task's test split with their ids.
struct Loaded {
  data::DataConfig config;
  text::TextPipeline text;
  std::vector<data::Pair> pairs;
  decode::Sentences sources, targets;
  std::vector<decode::TokenPair> ids;

  explicit Loaded(const std::string& name, std::size_t limit = 0, const std::string& tokenizer = "word")
      : config(task(name)), text(pipeline(config, tokenizer)) {
    data::each_pair(config, data::Split::test, 1, [&](data::Pair&& pair) {
      if (limit == 0 || pairs.size() < limit) pairs.push_back(std::move(pair));
    });
    for (const data::Pair& pair : pairs) {
      sources.push_back(text.encode_source(data::text(pair.source)));
      targets.push_back(text.encode_target(data::text(pair.target)));
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) ids.push_back({sources[i], targets[i]});
  }
  nn::Transformer model() const {
    return decode::toy_model(std::max(text.source().size(), text.target().size()));
  }
  GoldComparison compare(const nn::Transformer& model, int threads) const {
    return compare_with_gold(model, pairs, ids, threads);
  }
};

const RelationAgreement* find(const GoldComparison& comparison, const Head& head, Relation relation) {
  for (std::size_t h = 0; h < comparison.heads.size(); ++h)
    for (std::size_t r = 0; r < comparison.relations.size(); ++r)
      if (comparison.heads[h] == head && comparison.relations[r].relation == relation)
        return comparison.agreements[h][r] ? &*comparison.agreements[h][r] : nullptr;
  return nullptr;
}

TEST(GoldProblem, SaysWhenThereIsNothingToCompareWith) {
  const Loaded copy("copy", 5), letters("copy", 5, "char"), numbers("numbers", 5);
  EXPECT_EQ(gold_problem(copy.pairs, copy.ids), "");
  EXPECT_EQ(gold_problem(numbers.pairs, numbers.ids), "the pairs have no gold alignment or dependencies");
  EXPECT_THAT(gold_problem(letters.pairs, letters.ids),
              HasSubstr("expected one piece a token (tokenizer.kind: word)"));
  EXPECT_EQ(message_of<Error>([&] { numbers.compare(numbers.model(), 1); }),
            "comparison with gold annotations: the pairs have no gold alignment or dependencies");
}

TEST(GoldComparison, OfUniformAttentionIsOneOverWhatIsSeen) {
  const Loaded data("grammar", 60);
  nn::Transformer model = data.model();
  make_uniform(model);
  const GoldComparison comparison = data.compare(model, 1);
  ASSERT_EQ(comparison.heads.size(), 12u);
  ASSERT_EQ(comparison.relations.size(), 8u);
  double head = 0, input = 0, predicted = 0, aligned = 0;
  std::int64_t heads = 0, earlier = 0, linked = 0;
  for (const data::Pair& pair : data.pairs) {
    const double source = static_cast<double>(pair.source.size()) + 1;
    for (const int h : pair.source_tree.heads)
      if (h >= 0) ++heads, head += 1 / source;
    for (int t = 0; t < std::ssize(pair.target); ++t) {
      const int h = pair.target_tree.heads[static_cast<std::size_t>(t)];
      if (h >= 0 && h < t) ++earlier, input += 1. / (t + 2), predicted += 1. / (t + 1);
      std::int64_t links = 0;
      for (const data::Link& link : pair.alignment) links += link.target == t;
      linked += links > 0;
      aligned += static_cast<double>(links) / source;
    }
  }
  for (const int layer : {0, 1}) {
    const Head encoder{{nn::AttentionKind::encoder, layer}, 1},
        decoder{{nn::AttentionKind::decoder, layer}, 1}, cross{{nn::AttentionKind::cross, layer}, 0};
    EXPECT_EQ(find(comparison, encoder, Relation::head)->edges.tokens(), heads);
    EXPECT_NEAR(find(comparison, encoder, Relation::head)->edges.mass(), head / static_cast<double>(heads),
                1e-6);
    EXPECT_NEAR(find(comparison, decoder, Relation::input_head)->edges.mass(),
                input / static_cast<double>(earlier), 1e-6);
    EXPECT_NEAR(find(comparison, decoder, Relation::predicted_head)->edges.mass(),
                predicted / static_cast<double>(earlier), 1e-6);
    EXPECT_NEAR(find(comparison, cross, Relation::predicted_alignment)->edges.mass(),
                aligned / static_cast<double>(linked), 1e-6);
    EXPECT_EQ(find(comparison, cross, Relation::head), nullptr);
    EXPECT_EQ(find(comparison, encoder, Relation::input_alignment), nullptr);
  }
}

TEST(GoldComparison, HasTheFixedOffsetsOfTasksWhoseGoldIsOne) {
  const Loaded copy("copy");
  const GoldComparison comparison = copy.compare(copy.model(), 2);
  ASSERT_EQ(comparison.relations.size(), 2u);  // no dependencies
  EXPECT_EQ(comparison.relations[0].relation, Relation::predicted_alignment);
  EXPECT_EQ(comparison.relations[0].edges.mass().offset, 0);
  EXPECT_EQ(comparison.relations[0].edges.mass().score, 1);
  ASSERT_TRUE(comparison.relations[0].error_rate);
  EXPECT_EQ(comparison.relations[0].error_rate->offset, 0);
  EXPECT_EQ(comparison.relations[0].error_rate->score, 0);

  const Loaded recall("recall");
  const GoldComparison of_recall = recall.compare(recall.model(), 2);
  EXPECT_EQ(of_recall.relations[0].relation, Relation::head);
  EXPECT_EQ(of_recall.relations[0].edges.share("previous").offset, -1);
  EXPECT_EQ(of_recall.relations[0].edges.share("previous").score, 1);
  EXPECT_LT(of_recall.relations[0].edges.share("induction").score, 0.5);
}

TEST(GoldComparison, DoesNotDependOnThreads) {
  const Loaded data("grammar");
  const nn::Transformer model = data.model();
  const GoldComparison one = data.compare(model, 1), four = data.compare(model, 4);
  for (std::size_t h = 0; h < one.heads.size(); ++h)
    for (std::size_t r = 0; r < one.relations.size(); ++r) {
      ASSERT_EQ(one.agreements[h][r].has_value(), four.agreements[h][r].has_value());
      if (!one.agreements[h][r]) continue;
      EXPECT_EQ(one.agreements[h][r]->edges.mass(), four.agreements[h][r]->edges.mass());
      EXPECT_EQ(one.agreements[h][r]->alignment.possible_hits,
                four.agreements[h][r]->alignment.possible_hits);
    }
}

TEST(GoldComparison, RefusesWeightsThatAreNotFinite) {
  const Loaded data("copy", 5);
  nn::Transformer model = data.model();
  nn::ParameterStore& store = model.parameters();
  store.value(store.at("decoder/layers/1/cross_attention/query/weight")).as<float>()[0] =
      std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message_of<NumbersError>([&] { data.compare(model, 1); }),
            "attention weights of cross layer 1 head 0 are not finite");
}

}  // namespace
}  // namespace polyhead::heads
