#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "polyhead/train/updater.h"
#include "train/tiny_task.h"

/// The bits of a short run, which a change that is not meant to change results does not change.
namespace polyhead::train {
namespace {

/// What the compiler and the libraries choose their code by, as far as it can change a bit.
std::string instruction_set() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "AVX2";
  return "SSE2";
#else
  return "another instruction set";
#endif
}

/// "AuthenticAMD 26 2": vendor, family and model, which -march=native goes by.
std::string processor() {
  std::map<std::string, std::string> fields;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();)
    if (const std::size_t colon = line.find(':'); colon != line.npos && colon + 2 <= line.size())
      fields[line.substr(0, line.find_last_not_of("\t ", colon - 1) + 1)] = line.substr(colon + 2);
  return fields["vendor_id"] + ' ' + fields["cpu family"] + ' ' + fields["model"];
}

std::string combination() {
#ifdef __clang__
  const std::string compiler = concat("clang ", __clang_major__);
#else
  const std::string compiler = concat("g++ ", __GNUC__);
#endif
  const std::string build = POLYHEAD_BUILD;
  const std::string machine = build.find("native") == build.npos ? "" : ", " + processor();
  return concat(build, ", ", compiler, ", ", instruction_set(), machine);
}

std::string bits(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

/// Loss and gradient norm of eight updates: dropout, label smoothing, clipping, four shards, a schedule.
std::vector<std::string> short_run(int threads) {
  const data::ParallelCorpus corpus = tiny_corpus(40, 9);
  nn::Transformer model = tiny_model(DType::f32);
  Config config;
  config.model = model.config();
  config.training.batch_tokens = 1024;
  config.training.lanes.count = 4;
  config.training.schedule.learning_rate = 0.01;
  config.training.schedule.warmup_steps = 3;
  config.training.adam.clip_norm = 1;
  Updater updater(config, model, threads);
  std::vector<std::int32_t> pairs;
  for (std::int32_t i = 0; i < corpus.size(); ++i) pairs.push_back(i);
  std::vector<std::string> result;
  for (std::int64_t step = 1; step <= 8; ++step) {
    const StepReport report = updater.run(corpus, pairs, step);
    result.push_back(bits(report.loss) + " " + bits(report.grad_norm));
  }
  return result;
}

TEST(LossBits, AreThoseThatWereKept) {
  const std::vector<std::string> run = short_run(2);
  EXPECT_EQ(short_run(1), run);
  EXPECT_EQ(short_run(3), run);
  std::ifstream file(POLYHEAD_TEST_DATA "/loss_bits.json");
  const nlohmann::json kept = nlohmann::json::parse(file);
  const std::string key = combination();
  if (!kept.contains(key))
    GTEST_SKIP() << "tests/data/loss_bits.json has no losses of this combination; they are\n"
                 << nlohmann::json(key) << ": " << nlohmann::json(run);
  EXPECT_EQ(kept.at(key).get<std::vector<std::string>>(), run) << key;
}

}  // namespace
}  // namespace polyhead::train
