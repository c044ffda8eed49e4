#include "polyhead/data/grammar/grammar.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "data/grammar/phenomena.h"
#include "data/grammar/rules.h"
#include "data/grammar/sampler.h"
#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"

namespace polyhead::data::grammar {
namespace {

/// In percent: coordinated, complement, reason, relative, attribute, adjective, name, past, modal, plural; deepest.
constexpr Profile usual{10, 25, 30, 25, 30, 30, 25, 45, 20, 40, 2, false};
constexpr Profile long_sentences{80, 40, 50, 40, 40, 50, 25, 50, 25, 40, 2, false};
constexpr Profile deep_sentences{0, 85, 20, 40, 8, 10, 60, 25, 15, 40, 5, false};
constexpr Profile attracted{0, 25, 10, 25, 80, 15, 10, 50, 25, 50, 2, false};
constexpr Profile new_combinations{10, 25, 30, 25, 30, 30, 25, 45, 20, 40, 2, true};

constexpr int phenomenon_size = 1000, generalisation_size = 1000, small = 200;

struct SplitRow {
  Split split;
  const Profile* profile;
};

constexpr SplitRow split_table[] = {
    {{"train", 20000, "for training"}, &usual},
    {{"valid", 1000, "for choosing settings and checkpoints"}, &usual},
    {{"test", 2000, "the same distribution as training"}, &usual},
    {{"names", phenomenon_size, "names are copied"}, &usual},
    {{"articles", phenomenon_size, "articles agree with their nouns in gender, case and number"}, &usual},
    {{"agreement", phenomenon_size, "finite verbs agree with their subjects in number"}, &usual},
    {{"verb_final", phenomenon_size, "the finite verb ends a subordinate clause"}, &usual},
    {{"inversion", phenomenon_size, "the finite verb is second, before its subject"}, &usual},
    {{"particles", phenomenon_size, "the particle of a separable verb ends its clause"}, &usual},
    {{"bracket", phenomenon_size, "the participle ends its clause"}, &usual},
    {{"attachment", phenomenon_size, "a prepositional phrase belongs to the verb or to the object"}, &usual},
    {{"relatives", phenomenon_size, "relative pronouns have the gender of their antecedent and a case"},
     &usual},
    {{"pronouns", phenomenon_size, "pronouns have the gender of their antecedent"}, &usual},
    {{"negation", phenomenon_size, "nicht or kein, and where"}, &usual},
    {{"senses", phenomenon_size, "words with two translations"}, &usual},
    {{"length", generalisation_size, "21 to 40 tokens"}, &long_sentences},
    {{"depth", generalisation_size, "3 to 5 clauses one in another"}, &deep_sentences},
    {{"composition", generalisation_size, "combinations that training never has"}, &new_combinations},
    {{"attractors", generalisation_size, "2 or 3 attractors between subject and verb"}, &attracted},
    {{"length-valid", small, "as length"}, &long_sentences},
    {{"depth-valid", small, "as depth"}, &deep_sentences},
    {{"composition-valid", small, "as composition"}, &new_combinations},
    {{"attractors-valid", small, "as attractors"}, &attracted},
};
constexpr int first_phenomenon = 3, length_split = 15, depth_split = 16, composition_split = 17,
              attractors_split = 18;
constexpr int generalisations = 4;

const std::vector<Split>& split_list() {
  static const std::vector<Split> list = [] {
    std::vector<Split> splits;
    for (const SplitRow& row : split_table) splits.push_back(row.split);
    return splits;
  }();
  return list;
}

bool within(int n, int low, int high) { return low <= n && n <= high; }

/// A candidate on its way to a pair.
struct Candidate {
  Derivation derivation;
  Side source, target;
  Agreement agreement;
  int depth;

  explicit Candidate(Derivation d)
      : derivation(std::move(d)), source(english(derivation.tree)), depth(grammar::depth(derivation.tree)) {}
  void translate() {
    target = german(derivation.tree);
    agreement = grammar::agreement(derivation.tree, target);
  }
};

/// The one split for sentences of its kind, whatever their hash; -1: none, 0: training and the like.
int kind(const Candidate& c) {
  const int source = static_cast<int>(c.source.tokens.size()),
            target = static_cast<int>(c.target.tokens.size());
  if (c.agreement.distance > 12 || c.depth > 5 || c.agreement.attractors > 3) return -1;
  const bool deep = c.depth > 2, attracted_ = c.agreement.attractors > 1, combined = c.derivation.held_out;
  const bool longer = within(source, 21, 40) && within(target, 21, 40);
  const bool usual_length = within(source, 5, 20) && within(target, 5, deep ? 25 : 20);
  if (!longer && !usual_length) return -1;
  if (deep + attracted_ + combined + longer > 1) return -1;
  return deep         ? depth_split
         : attracted_ ? attractors_split
         : combined   ? composition_split
         : longer     ? length_split
                      : 0;
}

/// Sixteenths of the sentences that are of the kind of training: train, valid, test, and the rest for phenomena.
constexpr unsigned for_train = 9, for_valid = 10, for_test = 12;

/// How much of the sentences that hold several phenomena go to each: the rare ones get more.
constexpr std::array<int, phenomenon_names.size()> weights{2, 1, 1, 1, 2, 6, 2, 2, 6, 12, 4, 2};

/// One of the phenomena of a sentence, by its hash.
int phenomenon_split(const std::vector<Probe>& probes, std::uint64_t hash) {
  std::array<int, weights.size()> shares{};
  for (const Probe& probe : probes)
    shares[static_cast<std::size_t>(probe.phenomenon)] = weights[static_cast<std::size_t>(probe.phenomenon)];
  const int all = std::accumulate(shares.begin(), shares.end(), 0);
  if (all == 0) return -1;
  auto left = static_cast<int>((hash >> 32) % static_cast<std::uint64_t>(all));
  std::size_t i = 0;
  for (; left >= shares[i]; ++i) left -= shares[i];
  return first_phenomenon + static_cast<int>(i);
}

Pair annotate(Candidate&& c, std::vector<Probe>&& found) {
  Pair pair;
  pair.alignment = align(c.derivation.tree, c.source, c.target);
  pair.source.assign(c.source.tokens.begin(), c.source.tokens.end());
  pair.target.assign(c.target.tokens.begin(), c.target.tokens.end());
  pair.source_tree = std::move(c.source.tree);
  pair.target_tree = std::move(c.target.tree);
  pair.probes = std::move(found);
  pair.depth = c.depth;
  pair.attractors = c.agreement.attractors;
  pair.held_out = c.derivation.held_out;
  return pair;
}

std::uint64_t hash_of(const Side& side) {
  RngKey key;
  for (const std::string_view token : side.tokens) key = key.fold(token);
  return key.value;
}

/// The split's pair of this candidate, if it is one.
bool belongs(Candidate& c, int split, std::uint64_t sentence, std::vector<Probe>& found) {
  const unsigned share = sentence % 16;
  const bool of_phenomenon = within(split, first_phenomenon, length_split - 1);
  const bool usual_split = split < length_split;
  if (usual_split) {
    const int home = share < for_train ? 0 : share < for_valid ? 1 : share < for_test ? 2 : first_phenomenon;
    if (home != (of_phenomenon ? first_phenomenon : split) ||
        !within(static_cast<int>(c.source.tokens.size()), 5, 20))
      return false;
  } else if ((share < 4) != (split >= length_split + generalisations)) {
    return false;
  }
  c.translate();
  const int base = split >= length_split + generalisations ? split - generalisations : split;
  if (kind(c) != (usual_split ? 0 : base)) return false;
  found = probes(c.derivation.tree, c.target);
  return !of_phenomenon || phenomenon_split(found, sentence) == split;
}

}  // namespace

std::span<const Split> splits() { return split_list(); }

const Split& find_split(std::string_view name) {
  std::string all;
  for (const Split& split : split_list()) {
    if (split.name == name) return split;
    all.append(all.empty() ? "" : ", ").append(split.name);
  }
  throw Error(concat("grammar: no split \"", name, "\", expected one of ", all));
}

Generator::Generator(std::string_view split, std::uint64_t seed)
    : split_(static_cast<int>(&find_split(split) - split_list().data())),
      key_(RngKey{seed}.fold("grammar").fold(split).value) {}

Pair Generator::next() {
  constexpr int tries = 1'000'000;
  for (int i = 0; i < tries; ++i) {
    RandomStream random(RngKey{key_}.fold(candidate_++));
    Candidate candidate(sample(*split_table[split_].profile, random));
    std::vector<Probe> found;
    if (!belongs(candidate, split_, hash_of(candidate.source), found)) continue;
    Pair pair = annotate(std::move(candidate), std::move(found));
    if (seen_.insert(text(pair.source)).second) return pair;
  }
  throw DataError(concat("grammar: no further sentence of split ", split_table[split_].split.name, " after ",
                         seen_.size()));
}

std::vector<Pair> generate(std::string_view split, int size, std::uint64_t seed) {
  Generator generator(split, seed);
  std::vector<Pair> pairs;
  for (int i = 0; i < size; ++i) pairs.push_back(generator.next());
  return pairs;
}

}  // namespace polyhead::data::grammar
