#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tools/program.h"

namespace polyhead::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Arguments bench_train(const Arguments& more) {
  Arguments arguments{"bench",         "train", tiny_config(), "--steps", "2",
                      "--repetitions", "2",     "--threads",   "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(BenchTrain, ReportsItsFiguresAsJson) {
  const Outcome outcome = run(bench_train({"--json", "--profile"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto report = nlohmann::ordered_json::parse(outcome.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : report.items()) keys.push_back(key);
  EXPECT_THAT(
      keys, ElementsAre("name", "threads", "precision", "steps", "repetitions", "target_tokens_per_step",
                        "target_tokens_per_second", "source_tokens_per_second",
                        "target_tokens_per_second_repetitions", "seconds_per_step", "gflops",
                        "gemm_limit_gflops", "gemm_limit_share", "peak_memory_bytes", "expected_memory_bytes",
                        "arena_bytes", "parameters", "flops_per_target_token", "loss", "profile"));
  EXPECT_EQ(report["name"], "tiny");
  EXPECT_EQ(report["threads"], 2);
  EXPECT_EQ(report["precision"], "f32");
  EXPECT_EQ(report["steps"], 2);
  EXPECT_EQ(report["target_tokens_per_second_repetitions"].size(), 2U);
  EXPECT_GT(report["peak_memory_bytes"], 1 << 20);
  const double rate = report["target_tokens_per_second"];
  EXPECT_NEAR(report["gflops"].get<double>(), rate * report["flops_per_target_token"].get<double>() / 1e9,
              1e-9 * rate);
  EXPECT_GT(report["gemm_limit_share"], 0);
}

TEST(BenchTrain, ExpectsTheMemoryThatItTakes) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own memory grows with every allocation";
#endif
  for (const std::string precision : {"f32", "bf16"}) {
    const json report = json::parse(
        run(bench_train({"--json", "--set", "model.d_model=512", "--set", "training.precision=" + precision}))
            .out);
    const double taken = report["peak_memory_bytes"];
    EXPECT_NEAR(report["expected_memory_bytes"].get<double>(), taken, 0.1 * taken) << precision;
  }
}

TEST(BenchTrain, ProfilesEveryOpInBothPasses) {
  const json report = json::parse(run(bench_train({"--json", "--profile"})).out);
  const auto calls = [&](const std::string& op, const std::string& pass) {
    for (const json& row : report["profile"])
      if (row["op"] == op && row["pass"] == pass) return row["calls"].get<int>();
    return 0;
  };
  // Two repetitions of two updates, each of two lanes; 3 attention blocks, an encoder and a decoder layer.
  EXPECT_EQ(calls("MultiHeadAttention", "forward"), 4 * 2 * 3);
  EXPECT_EQ(calls("MultiHeadAttention", "backward"), 4 * 2 * 3);
  EXPECT_EQ(calls("Linear", "forward"), 4 * 2 * (3 * 4 + 2 * 2));
  EXPECT_EQ(calls("add_gradients", "update"), 4 * 2);
  EXPECT_EQ(calls("Adam", "update"), 4);
}

TEST(BenchTrain, ResultsDoNotDependOnTheProfile) {
  const json with = json::parse(run(bench_train({"--json", "--profile"})).out);
  const json without = json::parse(run(bench_train({"--json"})).out);
  EXPECT_EQ(with["loss"], without["loss"]);
  EXPECT_FALSE(without.contains("profile"));
}

TEST(BenchTrain, WritesItsBatches) {
  const std::string path = fresh_path("batches.jsonl");
  const Outcome outcome = run(bench_train({"--json", "--write-batches", path}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<json> batches = read_json_lines(path);
  ASSERT_EQ(batches.size(), 2U);
  std::size_t target_tokens = 0;
  for (const json& batch : batches) {
    ASSERT_EQ(batch["source"].size(), batch["target"].size());
    for (const char* side : {"source", "target"})
      for (const json& sentence : batch[side]) {
        EXPECT_EQ(sentence.back(), 2);
        EXPECT_NE(sentence.front(), 1);
      }
    for (const json& sentence : batch["target"]) target_tokens += sentence.size();
  }
  EXPECT_EQ(json::parse(outcome.out)["target_tokens_per_step"], static_cast<double>(target_tokens) / 2);
}

TEST(BenchTrain, TrainsOnRandomSentencesOfOneLength) {
  const std::string path = fresh_path("random.jsonl");
  const Outcome outcome = run(bench_train({"--json", "--length", "60", "--set", "tokenizer.vocab_size=50",
                                           "--set", "data.task=files", "--write-batches", path}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("train: 8 pairs, 8 kept"));
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["target_tokens_per_step"], 240) << "as many sentences as training.batch_tokens, 256, hold";
  EXPECT_GT(report["arena_bytes"], 0);
  EXPECT_LT(report["arena_bytes"], report["peak_memory_bytes"]);
  std::set<int> ids;
  for (const json& batch : read_json_lines(path))
    for (const char* side : {"source", "target"}) {
      ASSERT_EQ(batch[side].size(), 4U);
      for (const json& sentence : batch[side]) {
        ASSERT_EQ(sentence.size(), 60U);
        EXPECT_EQ(sentence.back(), 2);
        ids.insert(sentence.begin(), sentence.end());
      }
    }
  // 944 draws from 47 words leave one out once in ten million times.
  EXPECT_EQ(ids.size(), 48U) << "all ordinary ids and that of the end";
  EXPECT_EQ(*ids.begin(), 2);
  EXPECT_EQ(*ids.rbegin(), 49);
}

TEST(BenchTrain, TakesASentenceLongerThanABatchOrThanTheModelHasPlacesFor) {
  const Outcome outcome = run(bench_train({"--json", "--length", "300"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["target_tokens_per_step"], 300);
}

TEST(BenchTrain, PrintsATableByDefault) {
  const Outcome outcome = run(bench_train({"--profile"}));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("target_tokens_per_second  "));
  EXPECT_THAT(outcome.out, HasSubstr("MultiHeadAttention"));
  EXPECT_THAT(outcome.err, HasSubstr("repetition 2 of 2"));
}

Arguments bench_decode(const Arguments& more) {
  Arguments arguments{"bench", "decode", trained_run(), "--repetitions", "2", "--threads", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(BenchDecode, ReportsItsFiguresAsJson) {
  const Outcome outcome = run(bench_decode({"--json", "--profile", "--beam", "2"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto report = nlohmann::ordered_json::parse(outcome.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : report.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("name", "checkpoint", "step", "threads", "beam_size", "repetitions",
                                "sentences", "source_tokens", "output_tokens", "output_tokens_per_second",
                                "output_tokens_per_second_repetitions", "sentences_per_second", "seconds",
                                "peak_memory_bytes", "parameters", "log_probability_per_token", "profile"));
  EXPECT_EQ(report["name"], "tiny");
  EXPECT_EQ(report["step"], 40);
  EXPECT_EQ(report["checkpoint"], trained_run() + "/checkpoints/step-00000040.h5");
  EXPECT_EQ(report["threads"], 2);
  EXPECT_EQ(report["beam_size"], 2);
  EXPECT_EQ(report["sentences"], 30);
  EXPECT_EQ(report["output_tokens_per_second_repetitions"].size(), 2U);
  EXPECT_GT(report["peak_memory_bytes"], 1 << 20);
  EXPECT_LT(report["log_probability_per_token"], 0);
  EXPECT_NEAR(report["sentences_per_second"].get<double>() / 30,
              report["output_tokens_per_second"].get<double>() / report["output_tokens"].get<double>(),
              1e-6 * report["sentences_per_second"].get<double>());
}

TEST(BenchDecode, ProfileAddsUpToAllOfTheTime) {
  const json report = json::parse(run(bench_decode({"--json", "--profile"})).out);
  std::vector<std::string> ops;
  double share = 0;
  for (const json& row : report["profile"]) {
    ops.push_back(row["op"]);
    share += row["share"].get<double>();
    EXPECT_EQ(row["pass"], "forward");
    EXPECT_GT(row["calls"], 0);
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_THAT(ops,
              ::testing::IsSupersetOf({"Linear", "MultiHeadAttention", "MostLikely", "search", "other"}));
}

TEST(BenchDecode, DecodesWhatTranslateDoes) {
  const std::string path = fresh_path("sources.jsonl"), translations = fresh_path("translations");
  const Outcome outcome = run(bench_decode({"--json", "--split", "valid", "--write-sources", path}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["beam_size"], 3);
  EXPECT_EQ(report["sentences"], 20);
  EXPECT_FALSE(report.contains("profile"));

  const std::vector<json> sources = read_json_lines(path);
  ASSERT_EQ(sources.size(), 20U);
  std::size_t source_tokens = 0;
  for (const json& line : sources) {
    source_tokens += line["source"].size();
    EXPECT_EQ(line["source"].back(), 2);
  }
  EXPECT_EQ(report["source_tokens"], source_tokens);

  ASSERT_EQ(run({"evaluate", trained_run(), "--split", "valid", "--output", translations}).status, 0);
  std::istringstream words(read_text(translations));
  const auto count = std::distance(std::istream_iterator<std::string>(words), {});
  EXPECT_EQ(report["output_tokens"], count + 20) << "each translation has an end token besides its words";
}

TEST(BenchDecode, PrintsATableByDefault) {
  const Outcome outcome = run(bench_decode({"--profile"}));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("output_tokens_per_second  "));
  EXPECT_THAT(outcome.out, HasSubstr("MultiHeadAttention"));
  EXPECT_THAT(outcome.err, HasSubstr("warm-up"));
  EXPECT_THAT(outcome.err, HasSubstr("repetition 2 of 2"));
}

Arguments bench_ops(const Arguments& more) {
  Arguments arguments{"bench", "ops", "--min-time", "0.0001"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(BenchOps, ReportsRatesAsOneJsonObject) {
  const Outcome outcome =
      run(bench_ops({"--json", "--filter", "^gemm/f32/.*/512x128x128$|^LayerNorm/forward/4096x128$"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  std::vector<std::string> names;
  for (const json& row : report["benchmarks"]) names.push_back(row["name"]);
  EXPECT_THAT(names, ElementsAre("gemm/f32/y/512x128x128", "gemm/f32/dx/512x128x128",
                                 "gemm/f32/dW/512x128x128", "LayerNorm/forward/4096x128"));
  // Rates are per nanosecond of processor time.
  const json& gemm = report["benchmarks"][0];
  EXPECT_EQ(gemm["time_unit"], "ns");
  EXPECT_NEAR(gemm["GF/s"].get<double>() * gemm["cpu_time"].get<double>(), 2.0 * 512 * 128 * 128, 1);
  EXPECT_FALSE(gemm.contains("GB/s"));
  const json& norm = report["benchmarks"][3];
  EXPECT_NEAR(norm["GB/s"].get<double>() * norm["cpu_time"].get<double>(), 2.0 * 4 * 4096 * 128, 1);
  EXPECT_FALSE(norm.contains("GF/s"));
}

TEST(BenchOps, MeasuresEveryOp) {
  const Outcome outcome = run(bench_ops({"--filter",
                                         "Linear/.*x128x128$|Entropy/.*/512x|Attention/.*/128x4x16$|"
                                         "LayerNorm/.*x128$|Residual.*x128$|Adam/update/2"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* name :
       {"Linear/forward/4096x128x128", "Linear/backward/4096x128x128",
        "ProjectedCrossEntropy/forward/512x128x10000", "ProjectedCrossEntropy/training/512x128x10000",
        "MultiHeadAttention/forward/128x4x16", "MultiHeadAttention/backward/128x4x16",
        "LayerNorm/backward/4096x128", "ResidualDropout/forward/4096x128",
        "ResidualDropout/backward/4096x128", "Adam/update/2097152"})
    EXPECT_THAT(outcome.out, HasSubstr(name));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(Bench, RefusesWrongUsage) {
  struct Case {
    Arguments arguments;
    int status;
    std::string message;
  };
  const Case cases[] = {{{"bench"}, 2, "subcommand is required"},
                        {{"bench", "nothing"}, 2, "subcommand is required"},
                        {{"bench", "train", "/no/such.yaml"}, 2, "/no/such.yaml"},
                        {bench_train({"--steps", "0"}), 2, "--steps"},
                        {bench_train({"--repetitions", "0"}), 2, "--repetitions"},
                        {bench_train({"--length", "1"}), 2, "--length"},
                        {bench_train({"--length", "65537"}), 2, "--length"},
                        {bench_train({"--set", "model.heads=3"}), 2, "does not divide d_model 16"},
                        {bench_train({"--set", "training.initial_checkpoint=x"}), 2, "expected null"},
                        {{"bench", "train", tiny_config(), "--steps", "100000"}, 3, "expected at most"},
                        {bench_train({"--write-batches", "/no/such/file"}), 4, "/no/such/file"},
                        {{"bench", "decode"}, 2, "MODEL"},
                        {{"bench", "decode", "/no/such/run"}, 4, "/no/such/run"},
                        {bench_decode({"--split", "all"}), 2, "--split"},
                        {bench_decode({"--beam", "0"}), 2, "--beam"},
                        {bench_decode({"--repetitions", "0"}), 2, "--repetitions"},
                        {bench_decode({"--set", "model.heads=1"}), 2, "a trained model keeps this setting"},
                        {bench_decode({"--set", "data.task=files"}), 2, "data.test: no files are given"},
                        {bench_decode({"--write-sources", "/no/such/file"}), 4, "/no/such/file"},
                        {bench_ops({"--filter", "("}), 2, "--filter \"(\": not a POSIX extended"},
                        {bench_ops({"--filter", "none"}), 2, "no measurement has such a name"},
                        {{"bench", "ops", "--min-time", "0"}, 2, "--min-time"}};
  for (const Case& c : cases) {
    const Outcome outcome = run(c.arguments);
    EXPECT_EQ(outcome.status, c.status) << c.message;
    EXPECT_THAT(outcome.err, HasSubstr(c.message));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

}  // namespace
}  // namespace polyhead::testing
