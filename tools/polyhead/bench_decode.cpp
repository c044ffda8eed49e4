#include <fmt/format.h>

#include <numeric>

#include "bench.h"
#include "bench_commands.h"
#include "files.h"
#include "model.h"
#include "polyhead/core/clock.h"
#include "polyhead/core/error.h"
#include "polyhead/core/memory.h"
#include "polyhead/decode/translate.h"
#include "polyhead/train/validation.h"

namespace polyhead::tools {
namespace {

struct BenchDecodeOptions : ModelOptions {
  std::string split, sources;
  int repetitions = 3;
  bool profile = false, json = false;
};

/// Search for translations of the same sentences again and again.
class DecodeBench {
 public:
  explicit DecodeBench(const BenchDecodeOptions& o);
  Json run();

 private:
  void repeat(int repetition);
  Json profile_rows() const;

  const BenchDecodeOptions& options_;
  train::LoadedModel loaded_;
  train::EncodedLines lines_;
  std::vector<decode::TokenIds> sources_;
  std::int64_t source_tokens_ = 0, output_tokens_ = 0;
  double log_probability_ = 0;  ///< of all translations
  std::vector<double> seconds_;
  Profile profile_;
};

std::vector<std::string> settings() {
  std::vector<std::string> result = split_settings();
  result.insert(result.end(), {"decoding.*", "data.max_length"});
  return result;
}

DecodeBench::DecodeBench(const BenchDecodeOptions& o) : options_(o), loaded_(load(o, settings())) {
  const data::ParallelText text = load_split(o.split, loaded_.config);
  lines_ = train::encode_lines(loaded_.pipeline, loaded_.config, text.source);
  require<DataError>(!lines_.ids.empty(), text.name, ": no sentences, expected some to translate");
  warn_cropped(lines_.cropped, loaded_.config);
  sources_.assign(lines_.ids.begin(), lines_.ids.end());
  for (const decode::TokenIds source : sources_) source_tokens_ += static_cast<std::int64_t>(source.size());
  complain(
      concat("decoding ", loaded_.path, " (step ", loaded_.step, ") on ", sources_.size(), " sentences"));
}

/// Repetition 0 warms up: it is not counted.
void DecodeBench::repeat(int repetition) {
  Profile* profile = options_.profile && repetition > 0 ? &profile_ : nullptr;
  const Clock::time_point begin = Clock::now();
  const auto translations =
      decode::translate(*loaded_.model, sources_, loaded_.config.decoding, options_.threads, {}, profile);
  const double seconds = seconds_since(begin);
  if (repetition > 0) seconds_.push_back(seconds);
  output_tokens_ = 0;
  log_probability_ = 0;
  for (const auto& hypotheses : translations) {
    output_tokens_ += static_cast<std::int64_t>(hypotheses.front().ids.size());
    log_probability_ += hypotheses.front().log_probability;
  }
  complain(fmt::format(
      "{}: {:.0f} output tokens/s",
      repetition == 0 ? "warm-up" : fmt::format("repetition {} of {}", repetition, options_.repetitions),
      static_cast<double>(output_tokens_) / seconds));
}

/// With a last row for what lies outside of ops and the search: the threads' waiting for each other, above all.
Json DecodeBench::profile_rows() const {
  const double seconds = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
  double other = seconds * options_.threads;
  for (const Profile::Row& row : profile_.rows()) other -= row.seconds;
  Profile all = profile_;
  all.add("other", Pass::forward, options_.repetitions, other);
  return tools::profile_rows(all, seconds, options_.threads);
}

Json DecodeBench::run() {
  if (!options_.sources.empty()) {
    std::string text;
    for (const decode::TokenIds source : sources_) text += Json{{"source", source}}.dump() + '\n';
    write_output(options_.sources, text);
  }
  for (int r = 0; r <= options_.repetitions; ++r) repeat(r);
  const auto sentences = static_cast<double>(sources_.size());
  const auto output = static_cast<double>(output_tokens_);
  const decode::DecodingConfig& decoding = loaded_.config.decoding;
  Json report{{"name", loaded_.config.name},
              {"checkpoint", loaded_.path},
              {"step", loaded_.step},
              {"threads", options_.threads},
              {"beam_size", decoding.method == decode::Method::beam ? decoding.beam_size : 0},
              {"repetitions", options_.repetitions},
              {"sentences", sources_.size()},
              {"source_tokens", source_tokens_},
              {"output_tokens", output_tokens_},
              {"output_tokens_per_second", median(rates(output, seconds_))},
              {"output_tokens_per_second_repetitions", rates(output, seconds_)},
              {"sentences_per_second", median(rates(sentences, seconds_))},
              {"seconds", median(seconds_)},
              {"peak_memory_bytes", peak_resident_bytes()},
              {"parameters", loaded_.model->parameters().count()},
              {"log_probability_per_token", output > 0 ? log_probability_ / output : 0.0}};
  if (options_.profile) report["profile"] = profile_rows();
  return report;
}

int run_bench_decode(const BenchDecodeOptions& o) {
  const Json report = DecodeBench(o).run();
  write_report(report, o.json);
  return 0;
}

}  // namespace

Command add_bench_decode(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("decode", "Time the search for translations of a split");
  command->footer(
      "The time is that of encoder and search: reading and writing text do not count. Output tokens are\n"
      "those of each sentence's best translation, its end token counted.");
  auto o = std::make_shared<BenchDecodeOptions>();
  add_model(*command, *o);
  add_decoding(*command, *o);
  add_split(*command, o->split);
  command
      ->add_option("--repetitions", o->repetitions,
                   "repetitions of the same sentences, after one that is not counted; medians are reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--profile", o->profile, "report time by op");
  command->add_option("--write-sources", o->sources, "write the sentences' ids, a JSON object a line")
      ->type_name("FILE");
  command->add_flag("--json", o->json, "write one JSON object");
  return {command, [o] { return run_bench_decode(*o); }};
}

}  // namespace polyhead::tools
