#include "bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench_commands.h"
#include "files.h"
#include "polyhead/core/clock.h"
#include "polyhead/core/parallel.h"
#include "polyhead/kernels/gemm.h"
#include "polyhead/tensor/arena.h"

namespace polyhead::tools {
namespace {

/// Products x Wᵀ of 1024 rows, repeated for at least `seconds`; FLOP/s.
double gemm_rate(std::int64_t in, std::int64_t out, double seconds) {
  constexpr std::int64_t rows = 1024;
  Arena arena, scratch;
  const Tensor x = arena.zeros({rows, in}, DType::f32), weight = arena.zeros({out, in}, DType::f32);
  std::fill_n(x.as<float>(), x.size(), 0.5F);
  std::fill_n(weight.as<float>(), weight.size(), 0.25F);
  const Tensor y = arena.zeros({rows, out}, DType::f32);
  const auto once = [&] {
    kernels::gemm(scratch, kernels::Transpose::no, kernels::Transpose::yes, x, weight, y, false);
  };
  once();
  const Clock::time_point begin = Clock::now();
  double elapsed = 0;
  std::int64_t calls = 0;
  for (; elapsed < seconds; ++calls) {
    once();
    elapsed = seconds_since(begin);
  }
  return static_cast<double>(calls) * 2 * static_cast<double>(rows * in * out) / elapsed;
}

std::string profile_table(const Json& rows) {
  std::string text =
      fmt::format("\n{:24} {:8} {:>9} {:>10} {:>7}\n", "op", "pass", "calls", "seconds", "share");
  for (const Json& row : rows)
    text += fmt::format("{:24} {:8} {:>9} {:>10.4f} {:>6.1f}%\n", row["op"].get<std::string>(),
                        row["pass"].get<std::string>(), row["calls"].get<std::int64_t>(),
                        row["seconds"].get<double>(), 100 * row["share"].get<double>());
  return text;
}

std::string table(const Json& report) {
  std::size_t width = 0;
  for (const auto& [key, value] : report.items()) width = std::max(width, key.size());
  std::string text;
  for (const auto& [key, value] : report.items()) {
    if (value.is_structured()) continue;
    text += fmt::format("{:{}}  {}\n", key, width,
                        value.is_number_float() ? fmt::format("{:.6g}", value.get<double>())
                        : value.is_string()     ? value.get<std::string>()
                                                : value.dump());
  }
  return text;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

GemmLimit::GemmLimit(const nn::ModelConfig& c, std::int64_t target_vocabulary, int threads)
    : shapes_{{c.d_model, c.d_model, {}},
              {c.d_model, c.d_ff, {}},
              {c.d_ff, c.d_model, {}},
              {c.d_model, target_vocabulary, {}}},
      threads_(threads) {}

void GemmLimit::measure() {
  constexpr double seconds = 0.05;
  for (Shape& shape : shapes_) {
    std::vector<double> rates(static_cast<std::size_t>(threads_));
    parallel_for(threads_, threads_, [&](std::int64_t i, int) {
      rates[static_cast<std::size_t>(i)] = gemm_rate(shape.in, shape.out, seconds);
    });
    double sum = 0;
    for (const double rate : rates) sum += rate;
    shape.gflops.push_back(sum / 1e9);
  }
}

double GemmLimit::gflops() const {
  double best = 0;
  for (const Shape& shape : shapes_) best = std::max(best, median(shape.gflops));
  return best;
}

Command add_bench(CLI::App& program) {
  CLI::App* bench = program.add_subcommand("bench", "Measure speed, in figures for people or as JSON");
  bench->require_subcommand(1);
  const std::vector<Command> commands{add_bench_train(*bench), add_bench_decode(*bench),
                                      add_bench_ops(*bench)};
  return {bench, [commands] {
            const auto chosen = std::find_if(commands.begin(), commands.end(),
                                             [](const Command& c) { return c.app->parsed(); });
            return chosen->run();
          }};
}

std::vector<double> rates(double amount, const std::vector<double>& seconds) {
  std::vector<double> result;
  for (const double s : seconds) result.push_back(amount / s);
  return result;
}

Json profile_rows(const Profile& profile, double seconds, int threads) {
  std::vector<Profile::Row> rows = profile.rows();
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  Json result = Json::array();
  for (const Profile::Row& row : rows)
    result.push_back({{"op", row.op},
                      {"pass", name(row.pass)},
                      {"calls", row.calls},
                      {"seconds", row.seconds},
                      {"share", row.seconds / (seconds * (row.pass == Pass::update ? 1 : threads))}});
  return result;
}

void write_report(const Json& report, bool json) {
  if (json) return write_output("", report.dump() + '\n');
  write_output("", table(report) + (report.contains("profile") ? profile_table(report["profile"]) : ""));
}

}  // namespace polyhead::tools
