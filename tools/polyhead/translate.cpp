#include "commands.h"
#include "files.h"
#include "model.h"
#include "polyhead/core/error.h"
#include "polyhead/train/validation.h"
#include "progress.h"

namespace polyhead::tools {
namespace {

struct TranslateOptions : ModelOptions {
  std::string input, output;
  bool pieces = false, scores = false;
};

/// The lines of one sentence's hypotheses, in the form of Marian's n-best lists where there may be several.
std::string lines_of(std::size_t sentence, const std::vector<decode::Hypothesis>& hypotheses,
                     const train::LoadedModel& loaded, const TranslateOptions& o) {
  std::string text;
  for (const decode::Hypothesis& h : hypotheses) {
    if (o.scores) text += number_text(h.log_probability) + '\t';
    const std::string translation =
        o.pieces ? loaded.pipeline.target_pieces(h.ids) : loaded.pipeline.decode_target(h.ids);
    text += loaded.config.decoding.nbest == 1
                ? translation
                : concat(sentence, " ||| ", translation, " ||| ", number_text(h.score));
    text += '\n';
  }
  return text;
}

int run_translate(const TranslateOptions& o) {
  const train::LoadedModel loaded = load(o, {"decoding.*", "data.max_length"});
  const std::vector<std::string> lines = read_input(o.input).lines;
  SentenceProgress progress("translated", static_cast<std::int64_t>(lines.size()));
  const train::Translations translations =
      train::translate_lines(*loaded.model, loaded.pipeline, loaded.config, lines, o.threads,
                             [&](std::int64_t sentences) { progress.add(sentences); });
  progress.end();
  warn_cropped(translations.cropped, loaded.config);
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) text += lines_of(i, translations.hypotheses[i], loaded, o);
  write_output(o.output, text);
  return 0;
}

}  // namespace

Command add_translate(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("translate", "Translate lines of text, one by one: N lines in, N lines out");
  auto o = std::make_shared<TranslateOptions>();
  add_model(*command, *o);
  add_decoding(*command, *o);
  command
      ->add_option("--nbest", o->nbest,
                   "translations of each line, as INDEX ||| TEXT ||| SCORE; decoding.nbest")
      ->check(CLI::Range(1, 1024));
  command->add_option("--input", o->input, "text to translate, plain or gzip; stdin by default")
      ->type_name("FILE");
  command->add_option("--output", o->output, "where translations go; stdout by default")->type_name("FILE");
  command->add_flag("--pieces", o->pieces,
                    "write the pieces of the target vocabulary instead of text; a last <s> marks a "
                    "translation cut at the length limit, which has no end token");
  command->add_flag("--scores", o->scores, "write each log-probability and a tab before its line");
  return {command, [o] { return run_translate(*o); }};
}

}  // namespace polyhead::tools
