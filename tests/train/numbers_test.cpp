#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "polyhead/train/updater.h"
#include "support/check_op.h"
#include "support/message.h"
#include "train/tiny_task.h"

/// Values that are no numbers, put where training computes.
namespace polyhead::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Updates of a tiny model, each on all pairs.
struct TinyTraining {
  explicit TinyTraining(double learning_rate = 1e-3, double smoothing = 0.1) {
    config.model = model.config();
    config.training.batch_tokens = 1024;
    config.training.label_smoothing = smoothing;
    config.training.schedule.learning_rate = learning_rate;
    config.training.schedule.schedule = "constant";
    config.training.schedule.warmup_steps = 0;
    for (std::int32_t i = 0; i < corpus.size(); ++i) pairs.push_back(i);
  }
  StepReport update(Updater& updater, std::int64_t step) const { return updater.run(corpus, pairs, step); }

  data::ParallelCorpus corpus = tiny_corpus(24, 9);
  nn::Transformer model = tiny_model(DType::f32);
  Config config;
  std::vector<std::int32_t> pairs;
};

TEST(Numbers, NaNInAnyParameterIsNamed) {
  const TinyTraining training;
  const nn::ParameterStore& store = training.model.parameters();
  for (const nn::Parameter& p : store.parameters()) {
    TinyTraining fresh;
    float* values = fresh.model.parameters().value(fresh.model.parameters().at(p.path)).as<float>();
    std::fill_n(values, p.size(), std::numeric_limits<float>::quiet_NaN());
    Updater updater(fresh.config, fresh.model, 2);
    EXPECT_THAT(testing::message_of<NumbersError>([&] { fresh.update(updater, 1); }),
                AllOf(HasSubstr("training failed at step 1 (learning rate 0.001, gradient norm "),
                      HasSubstr("the first parameter that is not finite is " + p.path)));
  }
}

TEST(Numbers, AnInfiniteParameterIsNamed) {
  for (const float value : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()})
    for (const std::string path :
         {"embedding/weight", "encoder/layers/1/self_attention/query/weight",
          "decoder/layers/0/cross_attention/key/bias", "encoder/layers/0/self_attention/norm/gamma",
          "decoder/layers/0/feed_forward/outer/bias", "output/bias"}) {
      TinyTraining fresh;
      const nn::Parameter& p = fresh.model.parameters().at(path);
      std::fill_n(fresh.model.parameters().value(p).as<float>(), p.size(), value);
      Updater updater(fresh.config, fresh.model, 1);
      EXPECT_THAT(testing::message_of<NumbersError>([&] { fresh.update(updater, 1); }), HasSubstr(path))
          << value;
    }
}

TEST(Numbers, AnUpdateThatOverflowsMovesNothing) {
  TinyTraining training;
  const nn::Parameter& p = training.model.parameters().at("embedding/weight");
  float* values = training.model.parameters().value(p).as<float>();
  for (std::int64_t i = 0; i < p.size(); ++i) values[i] *= 3e37F;
  const std::vector<double> before = testing::values(training.model.parameters().slab());
  Updater updater(training.config, training.model, 2);
  EXPECT_THAT(testing::message_of<NumbersError>([&] { training.update(updater, 1); }),
              AllOf(HasSubstr("training failed at step 1"), HasSubstr("finite")));
  EXPECT_EQ(testing::values(training.model.parameters().slab()), before);
}

TEST(Numbers, AGradientThatIsNotFiniteThoughTheLossIsIsNamed) {
  TinyTraining training;
  training.config.model.tie_embeddings = nn::TieEmbeddings::none;
  nn::Transformer model(training.config.model, 12, 12);
  model.parameters().allocate(DType::f32);
  model.parameters().initialise(1);
  const auto fill = [&](const char* path, const auto& value) {
    const nn::Parameter& p = model.parameters().at(path);
    float* values = model.parameters().value(p).as<float>();
    for (std::int64_t i = 0; i < p.size(); ++i) values[i] = value(i);
  };
  // The output's weights are multiplied by zeros, their gradients are not.
  fill("decoder/layers/0/feed_forward/norm/gamma", [](std::int64_t) { return 0.0F; });
  fill("output/weight", [](std::int64_t i) { return i % 3 == 0 ? 3e38F : -3e38F; });
  Updater updater(training.config, model, 2);
  EXPECT_THAT(testing::message_of<NumbersError>([&] { training.update(updater, 1); }),
              AllOf(HasSubstr("training failed at step 1"), ::testing::ContainsRegex(": loss [0-9]"),
                    HasSubstr("the first parameter with a gradient that is not finite is ")));
}

TEST(Numbers, LearningRatesThatDivergeEndInAnErrorOrStayFinite) {
  int failed = 0;
  for (const double rate : {1.0, 1e3, 1e6, 1e12, 1e20, 1e38, 1e300}) {
    TinyTraining training(rate);
    Updater updater(training.config, training.model, 2);
    try {
      for (std::int64_t step = 1; step <= 8; ++step) {
        const StepReport report = training.update(updater, step);
        EXPECT_TRUE(std::isfinite(report.loss) && std::isfinite(report.grad_norm)) << rate;
      }
    } catch (const NumbersError& error) {
      EXPECT_THAT(error.what(), HasSubstr("training failed at step "));
      ++failed;
    }
  }
  EXPECT_GE(failed, 2);
}

}  // namespace
}  // namespace polyhead::train
