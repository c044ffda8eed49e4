#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <sstream>

#include "bench.h"
#include "bench_cases.h"
#include "bench_commands.h"
#include "files.h"
#include "polyhead/core/error.h"

namespace polyhead::tools {
namespace {

struct BenchOpsOptions {
  std::string filter = ".";
  double min_time = 0.1;
  bool json = false;
};

/// Google Benchmark's console output, written as each line comes.
class Reporter final : public benchmark::ConsoleReporter {
 public:
  Reporter() : ConsoleReporter(OO_None) {
    SetOutputStream(&text_);
    SetErrorStream(&context_);
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    write_output("", text_.str());
    text_.str("");
  }

 private:
  std::ostringstream text_;
  std::ostringstream
      context_;  ///< not shown: Debian's library warns that it is a debug build, which its loop is not
};

std::vector<OpCase> matching(const std::string& filter) {
  const std::regex expression = [&] {
    try {
      return std::regex(filter, std::regex::extended);
    } catch (const std::regex_error&) {
      throw Error(concat("--filter \"", filter, "\": not a POSIX extended regular expression"));
    }
  }();
  std::vector<OpCase> cases = op_cases();
  const std::string first = cases.front().name, last = cases.back().name;
  std::erase_if(cases, [&](const OpCase& c) { return !std::regex_search(c.name, expression); });
  require(!cases.empty(), "--filter \"", filter, "\": no measurement has such a name, they go from ", first,
          " to ", last);
  return cases;
}

void measure(const OpCase& c, benchmark::State& state) {
  Workspace workspace;
  const std::function<void()> once = c.prepare(workspace);
  once();  // makes oneDNN's primitives, and pages of memory
  for ([[maybe_unused]] const auto _ : state) once();
  constexpr auto rate = benchmark::Counter::kIsIterationInvariantRate;
  if (c.flops > 0) state.counters["GF/s"] = {c.flops / 1e9, rate};
  if (c.bytes > 0) state.counters["GB/s"] = {c.bytes / 1e9, rate};
}

void initialize(double min_time) {
  static std::string program = "polyhead";  // the library keeps a pointer to it for its reports
  std::string minimum = fmt::format("--benchmark_min_time={}", min_time);
  std::array<char*, 3> arguments{program.data(), minimum.data(), nullptr};
  int count = 2;
  benchmark::Initialize(&count, arguments.data());
}

int run_bench_ops(const BenchOpsOptions& o) {
  const std::vector<OpCase> cases = matching(o.filter);
  initialize(o.min_time);
  for (const OpCase& c : cases)
    benchmark::RegisterBenchmark(c.name.c_str(), [&c](benchmark::State& state) { measure(c, state); });
  if (!o.json) {
    Reporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter, ".");
    return 0;
  }
  std::ostringstream text;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&text);
  benchmark::RunSpecifiedBenchmarks(&reporter, ".");
  write_output("", text.str());
  return 0;
}

}  // namespace

Command add_bench_ops(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("ops", "Time single ops on one thread, with Google Benchmark");
  command->footer(
      "Names are op/[type/]pass/shape: gemm rows x in x out, Linear and ProjectedCrossEntropy tokens x in x "
      "out,\n"
      "MultiHeadAttention d_model x heads x length of each of the sentences that 4096 tokens hold, LayerNorm "
      "and\n"
      "ResidualDropout tokens x d_model, Adam parameters. Passes of gemm: y = x Wᵀ, dx = dy W and dW = dyᵀ "
      "x.\n"
      "ProjectedCrossEntropy/training is forward with both gradients. GF/s count matrix products without\n"
      "recomputation, GB/s tensors read and written. Rates are per second of processor time.");
  auto o = std::make_shared<BenchOpsOptions>();
  command
      ->add_option("--filter", o->filter,
                   "measure what has this in its name: a POSIX extended regular expression")
      ->type_name("REGEX")
      ->capture_default_str();
  command->add_option("--min-time", o->min_time, "least seconds of a measurement")
      ->check(CLI::Range(1e-6, 3600.0))
      ->capture_default_str();
  command->add_flag("--json", o->json, "write one JSON object: Google Benchmark's");
  return {command, [o] { return run_bench_ops(*o); }};
}

}  // namespace polyhead::tools
