#include "polyhead/decode/score.h"

#include "commands.h"
#include "files.h"
#include "model.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

struct ScoreOptions : ModelOptions {
  std::string source, target;
  bool pieces = false;
};

int run_score(const ScoreOptions& o) {
  const train::LoadedModel loaded = load(o, {"data.max_length"});
  const std::vector<std::string> source = read_input(o.source).lines,
                                 target = read_beside(o.target, o.source, source.size());
  std::vector<std::vector<std::int32_t>> ids;
  std::int64_t cropped = 0;
  for (std::size_t i = 0; i < source.size(); ++i) {
    ids.push_back(loaded.pipeline.encode_source(source[i]));
    cropped += text::crop(ids.back(), loaded.config.max_pieces());
    ids.push_back(o.pieces ? loaded.pipeline.ids_from_pieces(target[i])
                           : loaded.pipeline.encode_target(target[i]));
  }
  warn_cropped(cropped, loaded.config);
  std::vector<decode::TokenPair> pairs;
  for (std::size_t i = 0; i < ids.size(); i += 2) pairs.push_back({ids[i], ids[i + 1]});
  SentenceProgress progress("scored", static_cast<std::int64_t>(pairs.size()));
  std::string text;
  for (const decode::Score& score : decode::score(*loaded.model, pairs, o.threads,
                                                  [&](std::int64_t sentences) { progress.add(sentences); }))
    text += number_text(score.log_probability) + '\n';
  progress.end();
  write_output("", text);
  return 0;
}

}  // namespace

Command add_score(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "score", "Log-probability of given translations: natural logarithm, end token included, one a line");
  auto o = std::make_shared<ScoreOptions>();
  add_model(*command, *o);
  command->add_option("--source", o->source, "text file, plain or gzip; long lines are cut as by translate")
      ->required()
      ->type_name("FILE");
  command
      ->add_option(
          "--target", o->target,
          "its translation, line by line; lines of more than model.max_length - 1 pieces are an error. "
          "An empty line for an empty source has the log-probability 0")
      ->required()
      ->type_name("FILE");
  command->add_flag(
      "--pieces", o->pieces,
      "targets are pieces of the vocabulary, as translate --pieces writes them; one that ends with "
      "<s> was cut, and is scored without an end token");
  add_overrides(*command, o->overrides);
  return {command, [o] { return run_score(*o); }};
}

}  // namespace polyhead::tools
