#include "heads_lab.h"

#include <nlohmann/json.hpp>

#include "files.h"
#include "phenomena.h"
#include "polyhead/heads/head_set.h"
#include "sentences.h"

namespace polyhead::tools {
namespace {

using Json = nlohmann::ordered_json;
using heads::Head;

std::vector<data::Pair> plain_pairs(const MeasureOptions& o, const train::Config& config) {
  require(o.split == "train" || o.split == "valid" || o.split == "test", "--split: \"", o.split,
          "\", but data.task ", config.data.task, " has train, valid, test only");
  if (config.data.task != "files") {
    std::vector<data::Pair> pairs;
    data::each_pair(config.data, split_of(o.split), config.seed, [&](data::Pair&& pair) {
      if (o.limit == 0 || std::cmp_less(pairs.size(), o.limit)) pairs.push_back(std::move(pair));
    });
    return pairs;
  }
  const data::ParallelText text = load_split(o.split, config);
  return plain_split(o.split, text.source, text.target).pairs;
}

}  // namespace

void add_measuring(CLI::App& command, MeasureOptions& o) {
  add_model(command, o);
  command
      .add_option(
          "--split", o.split,
          "which part of the configured data: train, valid or test; of the toy language also any other of "
          "data grammar's splits")
      ->type_name("NAME")
      ->capture_default_str();
  add_limit(command, o.limit);
  command.add_flag("--json", o.json, "one JSON object in full precision");
}

heads::Text load_text(const MeasureOptions& o, const train::LoadedModel& loaded) {
  std::vector<data::Pair> pairs;
  if (loaded.config.data.task == "grammar") {
    const std::vector<std::string> splits = grammar_splits(o.split);
    require(splits.size() == 1, "--split: all is several splits, expected one");
    pairs = std::move(annotated_splits(splits, loaded.config, o.limit, o.threads).front().pairs);
  } else {
    pairs = plain_pairs(o, loaded.config);
  }
  if (o.limit > 0 && std::cmp_less(o.limit, pairs.size())) pairs.resize(static_cast<std::size_t>(o.limit));
  heads::Text text = heads::encode_text(std::move(pairs), loaded);
  if (text.left_out > 0)
    complain(concat(text.left_out, " pairs with a side that is empty or of more than ",
                    loaded.config.max_pieces(), " pieces, left out"));
  return text;
}

Json header(const MeasureOptions& o, const train::LoadedModel& loaded, const heads::Text& text) {
  return {{"checkpoint", loaded.path},
          {"step", loaded.step},
          {"split", o.split},
          {"sentences", text.pairs.size()}};
}

Json names_json(std::span<const Head> set) {
  Json names = Json::array();
  for (const Head& head : set) names.push_back(heads::name(head));
  return names;
}

const std::vector<FigureColumn>& figure_columns() {
  static const std::vector<FigureColumn> all{
      {"importance", &heads::HeadFigures::importance},
      {"importance_normalized", &heads::HeadFigures::importance_normalized},
      {"leave_one_out", &heads::HeadFigures::leave_one_out},
      {"confidence", &heads::HeadFigures::confidence},
      {"output_norm", &heads::HeadFigures::output_norm}};
  return all;
}

heads::HeadFigures measure(const MeasureOptions& o, const train::LoadedModel& loaded,
                           const heads::Text& text) {
  const std::vector<decode::TokenPair> pairs = text.ids();
  const heads::TokenKnowledge tokens = heads::token_knowledge(pairs, loaded.pipeline);
  const std::size_t passes = 4 + heads::all_heads(loaded.config.model).size();
  return with_progress("read", text.pairs.size() * passes, [&](const auto& progress) {
    return heads::head_figures(*loaded.model, tokens, o.threads, progress);
  });
}

std::vector<Command> add_heads_lab(CLI::App& heads_command) {
  return {add_mask(heads_command), add_importance(heads_command), add_curve(heads_command),
          add_prune(heads_command)};
}

}  // namespace polyhead::tools
