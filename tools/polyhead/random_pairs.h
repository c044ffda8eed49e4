#pragma once

#include <cstdint>

#include "polyhead/train/config.h"
#include "polyhead/train/training_data.h"

namespace polyhead::tools {

/// Makes room for sentences of `length` tokens, the end token counted: raises model.max_length and data.max_length where
/// they are less.
void allow_length(train::Config& config, std::int64_t length);

/// Sentence pairs of exactly `length` tokens a side, the end token counted, in place of the training text: enough for
/// `batches` full batches. Words are drawn evenly from a vocabulary of tokenizer.vocab_size ids, one for both languages or
/// one each as tokenizer.shared says; nothing is learnt. A function of the configuration's seed. length > 1.
train::TrainingData random_pairs(const train::Config& config, std::int64_t length, std::int64_t batches);

}  // namespace polyhead::tools
