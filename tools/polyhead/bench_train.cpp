#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "bench.h"
#include "bench_commands.h"
#include "configuration.h"
#include "files.h"
#include "polyhead/config/codec.h"
#include "polyhead/core/clock.h"
#include "polyhead/core/error.h"
#include "polyhead/core/memory.h"
#include "polyhead/nn/flops.h"
#include "polyhead/train/training_data.h"
#include "polyhead/train/updater.h"
#include "random_pairs.h"

namespace polyhead::tools {
namespace {

struct BenchTrainOptions : ConfigOptions {
  int steps = 20, repetitions = 3, threads = 1;
  int length = 0;  ///< of random sentences; 0: the training text
  bool profile = false, json = false;
  std::string batches;
};

using Pairs = std::span<const std::int32_t>;

/// The work of some batches.
struct Work {
  data::TokenCount tokens;
  nn::Flops flops;
};

Work work_of(const data::ParallelCorpus& corpus, std::span<const Pairs> batches,
             const nn::ModelConfig& config, std::int64_t target_vocabulary) {
  Work work;
  for (const Pairs pairs : batches) {
    const data::TokenCount tokens = data::count_tokens(corpus, pairs);
    work.tokens.source += tokens.source;
    work.tokens.target += tokens.target;
    for (const std::int32_t pair : pairs)
      work.flops += nn::training_flops(config, target_vocabulary, corpus.source_length(pair),
                                       corpus.target_length(pair));
  }
  return work;
}

/// A JSON object a batch: {"source": [[ids], ...], "target": [[ids], ...]}, each sentence with its end token.
std::string batch_lines(const data::ParallelCorpus& corpus, std::span<const Pairs> batches) {
  std::string text;
  for (const Pairs pairs : batches) {
    Json batch{{"source", Json::array()}, {"target", Json::array()}};
    for (const std::int32_t pair : pairs) {
      batch["source"].push_back(corpus.source(pair));
      batch["target"].push_back(corpus.target(pair));
    }
    text += batch.dump() + '\n';
  }
  return text;
}

/// Training on the same batches again and again.
class TrainBench {
 public:
  explicit TrainBench(const BenchTrainOptions& o);
  Json run();

 private:
  void warm_up();
  void repeat(int repetition);
  /// The most that activations and temporaries of all threads ever took.
  std::int64_t arena_bytes();

  const BenchTrainOptions& options_;
  train::Config config_;
  train::TrainingData data_;
  nn::Transformer model_;
  data::BatchPlan plan_;
  std::vector<Pairs> batches_;
  Work work_;  ///< of all batches
  train::Updater updater_;
  GemmLimit limit_;
  std::int64_t updates_ = 0;
  double loss_ = 0;  ///< mean of the last repetition
  std::vector<double> seconds_;
  /// The peak of training without what measuring the GEMM limit took: nothing that training takes is given back.
  std::int64_t memory_ = 0, expected_memory_ = 0;
};

train::Config checked_configuration(const BenchTrainOptions& o) {
  train::Config config = configuration(o);
  require(!config.training.initial_checkpoint,
          "training.initial_checkpoint: bench starts from initial values, expected null");
  if (o.length > 0) allow_length(config, o.length);
  return config;
}

TrainBench::TrainBench(const BenchTrainOptions& o)
    : options_(o),
      config_(checked_configuration(o)),
      data_(o.length > 0 ? random_pairs(config_, o.length, o.steps)
                         : train::load_training_data(config_, nullptr)),
      model_(train::make_model(config_, data_.pipeline)),
      plan_(data::BatchPlan::training(
          data_.corpus, std::int64_t{config_.training.batch_tokens} * config_.training.accumulate,
          config_.seed, 0)),
      updater_(config_, model_, o.threads),
      limit_(config_.model, data_.pipeline.target().size(), o.threads) {
  require<DataError>(o.steps <= plan_.size(), "--steps ", o.steps, ": an epoch of the training data has ",
                     plan_.size(), " batches, expected at most that many");
  for (std::int64_t i = 0; i < o.steps; ++i) batches_.push_back(plan_[i]);
  work_ = work_of(data_.corpus, batches_, config_.model, data_.pipeline.target().size());
  if (updater_.average()) copy(model_.parameters().slab(), *updater_.average());
}

void TrainBench::warm_up() {
  const auto tokens = [&](Pairs pairs) { return data::count_tokens(data_.corpus, pairs).both(); };
  std::vector<Pairs> order = batches_;
  std::stable_sort(order.begin(), order.end(), [&](Pairs a, Pairs b) { return tokens(a) > tokens(b); });
  order.resize(std::min<std::size_t>(order.size(), 3));
  expected_memory_ = updater_.expected_memory(data_.corpus, order.front());
  for (const Pairs pairs : order) updater_.run(data_.corpus, pairs, ++updates_);
  memory_ = peak_resident_bytes();
}

void TrainBench::repeat(int repetition) {
  limit_.measure();
  double loss = 0;
  const Clock::time_point begin = Clock::now();
  for (const Pairs pairs : batches_) loss += updater_.run(data_.corpus, pairs, ++updates_).loss;
  seconds_.push_back(seconds_since(begin));
  memory_ = std::max(memory_, resident_bytes());
  loss_ = loss / static_cast<double>(batches_.size());
  complain(fmt::format("repetition {} of {}: {:.0f} target tokens/s, loss {:.4f}", repetition,
                       options_.repetitions, static_cast<double>(work_.tokens.target) / seconds_.back(),
                       loss_));
}

std::int64_t TrainBench::arena_bytes() {
  std::size_t bytes = 0;
  for (const train::Worker& worker : updater_.workers()) bytes += worker.peak_bytes();
  return static_cast<std::int64_t>(bytes);
}

Json TrainBench::run() {
  complain(data_.corpus.report().summary("train", train::training_filter(config_)));
  if (!options_.batches.empty()) write_output(options_.batches, batch_lines(data_.corpus, batches_));
  warm_up();
  if (options_.profile) updater_.start_profile();
  for (int r = 1; r <= options_.repetitions; ++r) repeat(r);
  const auto per_step = [&](double amount) { return amount / static_cast<double>(batches_.size()); };
  const double source = static_cast<double>(work_.tokens.source),
               target = static_cast<double>(work_.tokens.target), flops = work_.flops.total();
  const double gflops = median(rates(flops / 1e9, seconds_));
  const std::string precision =
      config::Codec<train::Precision>::text(train::available(config_.training.precision));
  Json report{{"name", config_.name},
              {"threads", options_.threads},
              {"precision", precision},
              {"steps", options_.steps},
              {"repetitions", options_.repetitions},
              {"target_tokens_per_step", per_step(target)},
              {"target_tokens_per_second", median(rates(target, seconds_))},
              {"source_tokens_per_second", median(rates(source, seconds_))},
              {"target_tokens_per_second_repetitions", rates(target, seconds_)},
              {"seconds_per_step", per_step(median(seconds_))},
              {"gflops", gflops},
              {"gemm_limit_gflops", limit_.gflops()},
              {"gemm_limit_share", gflops / limit_.gflops()},
              {"peak_memory_bytes", memory_},
              {"expected_memory_bytes", expected_memory_},
              {"arena_bytes", arena_bytes()},
              {"parameters", model_.parameters().count()},
              {"flops_per_target_token", flops / target},
              {"loss", loss_}};
  if (options_.profile) {
    double seconds = 0;
    for (const double s : seconds_) seconds += s;
    report["profile"] = profile_rows(updater_.profile(), seconds, options_.threads);
  }
  return report;
}

int run_bench_train(const BenchTrainOptions& o) {
  const Json report = TrainBench(o).run();
  write_report(report, o.json);
  return 0;
}

}  // namespace

Command add_bench_train(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("train", "Time updates on the first batches of a configuration");
  auto o = std::make_shared<BenchTrainOptions>();
  add_configuration(*command, *o);
  command->add_option("--steps", o->steps, "updates of a repetition, each on a batch of its own")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      ->add_option("--repetitions", o->repetitions, "repetitions of the same batches; medians are reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option(
          "--length", o->length,
          "random words in place of the training text: sentences of this many tokens a side, the end token "
          "counted, from a vocabulary of tokenizer.vocab_size ids")
      ->check(CLI::Range(2, 65536));
  add_threads(*command, o->threads);
  command->add_flag("--profile", o->profile, "report time by op");
  command->add_option("--write-batches", o->batches, "write the batches' ids, a JSON object a line")
      ->type_name("FILE");
  command->add_flag("--json", o->json, "write one JSON object");
  return {command, [o] { return run_bench_train(*o); }};
}

}  // namespace polyhead::tools
