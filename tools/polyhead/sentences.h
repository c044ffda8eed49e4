#pragma once

#include <string>
#include <vector>

#include "phenomena.h"
#include "polyhead/train/model_file.h"

/// What a model makes of every sentence, for files that are read sentence by sentence.
namespace polyhead::tools {

/// Lines of text of which nothing more is known: each is one token of its pair.
AnnotatedSplit plain_split(const std::string& name, const std::vector<std::string>& source,
                           const std::vector<std::string>& target);

/// What `translations` of such a split are, and the log-probability of every target that the loss is taken of: those of
/// pairs with an empty side, or one that the model has no places for, have no tokens.
std::vector<train::ProbedSentence> scored_sentences(const train::LoadedModel& loaded,
                                                    const AnnotatedSplit& split,
                                                    const std::vector<std::string>& translations,
                                                    int threads);

/// A line for each sentence: one JSON object with all that is known about it.
std::string sentences_jsonl(const AnnotatedSplit& split, const std::vector<train::ProbedSentence>& sentences);

}  // namespace polyhead::tools
