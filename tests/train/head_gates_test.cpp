#include "polyhead/train/head_gates.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "polyhead/config/yaml.h"
#include "polyhead/ops/hard_concrete.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/run_folder.h"
#include "polyhead/train/trainer.h"
#include "polyhead/train/training_data.h"
#include "train/tiny_task.h"

namespace polyhead::train {
namespace {

TEST(HeadGates, ThePenaltysGradientIsThatOfTheHeadsExpectedToStayOpen) {
  nn::ModelConfig config;
  config.encoder_layers = 2;
  config.decoder_layers = 1;
  config.d_model = config.d_ff = 8;
  config.head_dim = 2;
  config.heads = nn::HeadCounts::Lists{{{2, 0}, {1}, {3}}};
  nn::Transformer model(config, 10, 10);
  HeadGates::declare(model);
  nn::ParameterStore& store = model.parameters();
  store.allocate(DType::f32);
  store.initialise(1);
  const HeadGates gates(model);
  gates.fill(0.5);
  EXPECT_NEAR(gates.expected_open(), 6 * ops::HardConcrete::open_probability(0.5), 1e-6);
  const Slab gradients({store.slab_size()}, DType::f32);
  fill_zero(gradients.tensor());
  gates.add_penalty(3, gradients.tensor());
  const nn::Parameter& cross = store.at("decoder/layers/0/cross_attention/gates");
  float& log_alpha = store.value(cross).as<float>()[2];
  log_alpha = 0.6f;
  const double above = gates.expected_open();
  log_alpha = 0.4f;
  EXPECT_NEAR(nn::ParameterStore::view(cross, gradients.tensor()).as<float>()[2],
              3 * (above - gates.expected_open()) / 0.2, 1e-3);
}

class HeadGatesTraining : public ::testing::Test {
 protected:
  HeadGatesTraining() {
    std::string pattern = (std::filesystem::temp_directory_path() / "polyhead_gates_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~HeadGatesTraining() override { std::filesystem::remove_all(folder_); }

  struct Recorder : Observer {
    std::vector<double> open;
    double loss = 0;
    void step(const StepReport& report) override { open.push_back(report.open_heads.value_or(-1)); }
    void validated(std::int64_t, const Figures& figures, bool) override { loss = figures.at(Metric::loss); }
  };

  Recorder run(const std::string& name, std::vector<std::string> settings) const {
    const auto config = config::parse<Config>(R"(
data: {task: copy, train_size: 200, valid_size: 20, test_size: 10}
tokenizer: {kind: word}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, heads: 2, d_ff: 32, dropout: 0}
training: {batch_tokens: 128, lanes: 2, max_steps: 30, learning_rate: 0.1, schedule: constant, warmup_steps: 0,
           validate_every: 30, checkpoint_every: 30}
)",
                                              "base", settings);
    Recorder recorder;
    train(config, {.folder = folder_ + "/" + name, .threads = 1}, recorder);
    return recorder;
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string folder_;
};

TEST_F(HeadGatesTraining, APenaltyClosesHeadsOfAConvergedModelAndUseFindsThemFolded) {
  EXPECT_EQ(run("plain", {}).open.back(), -1);
  const std::string from = "training.initial_checkpoint=" + path("plain");
  const Recorder free = run("free", {from, "training.head_gates={lambda: 1e-6, initial: 1}"}),
                 penalised = run("penalised", {from, "training.head_gates={lambda: 30, initial: 1}"});
  EXPECT_EQ(free.open.front(), penalised.open.front());
  EXPECT_LT(penalised.open.back(), 0.7 * free.open.back());
  EXPECT_LT(penalised.open.back(), penalised.open.front());

  const LoadedModel loaded = load_model(path("penalised"));
  const nn::ParameterStore& store = loaded.model->parameters();
  const Checkpoint checkpoint = read_checkpoint(loaded.path);
  const std::string attention = "decoder/layers/0/cross_attention";
  const NamedArray *trained = find(checkpoint.parameters, attention + "/output/weight"),
                   *gates = find(checkpoint.parameters, attention + "/gates");
  ASSERT_NE(gates, nullptr);
  const auto folded = store.value(store.at(attention + "/output/weight")).span<float>();
  for (std::size_t i = 0; i < folded.size(); ++i)
    EXPECT_NEAR(
        folded[i],
        trained->values[i] * static_cast<float>(ops::HardConcrete::value(double{gates->values[i % 16 / 8]})),
        1e-6);
  // Validation saw the model as it is used.
  const data::ParallelText text = data::load_text(loaded.config.data, data::Split::valid, loaded.config.seed);
  std::vector<Worker> workers(1);
  const double loss =
      loss_figures(*loaded.model, loss_corpus(loaded.config, text, loaded.pipeline), 128, workers)
          .at(Metric::loss);
  EXPECT_NEAR(loss, penalised.loss, 1e-5);
}

}  // namespace
}  // namespace polyhead::train
