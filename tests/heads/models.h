#pragma once

#include <string>
#include <vector>

#include "decode/toy_model.h"
#include "polyhead/heads/attention_maps.h"

/// Models and pairs for the tests of heads.
namespace polyhead::heads {

/// Queries are zero in every layer: every position attends to all that it sees alike.
inline void make_uniform(nn::Transformer& model) {
  nn::ParameterStore& store = model.parameters();
  for (const nn::Parameter& p : store.parameters())
    if (p.path.find("/query/") != std::string::npos) fill_zero(store.value(p));
}

/// Sentence pairs of random ids below `vocabulary`.
struct RandomPairs {
  decode::Sentences sources, targets;
  std::vector<decode::TokenPair> ids;
  RandomPairs(int count, std::int32_t vocabulary, int longest)
      : sources(decode::random_sentences(count, vocabulary, longest, 1)),
        targets(decode::random_sentences(count, vocabulary, longest, 2)) {
    for (std::size_t i = 0; i < sources.size(); ++i) ids.push_back({sources[i], targets[i]});
  }
  RandomPairs(const RandomPairs&) = delete;
  RandomPairs& operator=(const RandomPairs&) = delete;
};

}  // namespace polyhead::heads
