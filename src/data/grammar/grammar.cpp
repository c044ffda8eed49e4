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
constexpr Profile usual_sentences{10, 25, 30, 25, 30, 30, 25, 45, 20, 40, 2, false};
constexpr Profile long_sentences{80, 40, 50, 40, 40, 50, 25, 50, 25, 40, 2, false};
constexpr Profile deep_sentences{0, 85, 20, 40, 8, 10, 60, 25, 15, 40, 5, false};
/// Of depth 4 and 5, in few words.
constexpr Profile deeper_sentences{0, 90, 20, 40, 5, 5, 85, 5, 5, 60, 5, false};
constexpr Profile attracted{0, 25, 10, 25, 80, 15, 10, 50, 25, 50, 2, false};
constexpr Profile new_combinations{10, 25, 30, 25, 30, 30, 25, 45, 20, 40, 2, true};

/// What is tested about sentences: what kind they are. `none`: they are in no split.
enum class Test { usual, length, depth, composition, attractors, none };

/// A split has the sentences of one kind whose hash, in sixteenths, is from `begin` to before `end`.
struct SplitRow {
  Split split;
  Test test;
  const Profile* profile;
  unsigned begin, end;
};
constexpr unsigned for_valid = 9, for_test = 10, for_phenomena = 12, all_shares = 16;
constexpr unsigned for_generalisation = 4;

constexpr SplitRow phenomenon(Phenomenon p) {
  return {{name(p), 1000, SplitKind::phenomenon}, Test::usual, &usual_sentences, for_phenomena, all_shares};
}
constexpr SplitRow generalisation(std::string_view split, Test test, const Profile& profile) {
  return {{split, 1000, SplitKind::generalisation}, test, &profile, for_generalisation, all_shares};
}
constexpr SplitRow generalisation_valid(std::string_view split, Test test, const Profile& profile) {
  return {{split, 200, SplitKind::generalisation_valid}, test, &profile, 0, for_generalisation};
}

constexpr SplitRow split_table[] = {
    {{"train", 20000, SplitKind::usual}, Test::usual, &usual_sentences, 0, for_valid},
    {{"valid", 1000, SplitKind::usual}, Test::usual, &usual_sentences, for_valid, for_test},
    {{"test", 2000, SplitKind::usual}, Test::usual, &usual_sentences, for_test, for_phenomena},
    phenomenon(Phenomenon::names),
    phenomenon(Phenomenon::articles),
    phenomenon(Phenomenon::agreement),
    phenomenon(Phenomenon::verb_final),
    phenomenon(Phenomenon::inversion),
    phenomenon(Phenomenon::particles),
    phenomenon(Phenomenon::bracket),
    phenomenon(Phenomenon::attachment),
    phenomenon(Phenomenon::relatives),
    phenomenon(Phenomenon::pronouns),
    phenomenon(Phenomenon::negation),
    phenomenon(Phenomenon::senses),
    generalisation("length", Test::length, long_sentences),
    generalisation("depth", Test::depth, deep_sentences),
    generalisation("composition", Test::composition, new_combinations),
    generalisation("attractors", Test::attractors, attracted),
    generalisation_valid("length-valid", Test::length, long_sentences),
    generalisation_valid("depth-valid", Test::depth, deep_sentences),
    generalisation_valid("composition-valid", Test::composition, new_combinations),
    generalisation_valid("attractors-valid", Test::attractors, attracted),
};

const std::vector<Split>& split_list() {
  static const std::vector<Split> list = [] {
    std::vector<Split> splits;
    for (const SplitRow& row : split_table) splits.push_back(row.split);
    return splits;
  }();
  return list;
}

constexpr int deepest = 5;
/// Of ten sentences of depth, one after the other. A depth of 5 needs more than 20 tokens: 23 with commas.
constexpr std::array<int, 10> depths{3, 4, 3, 4, 3, 4, 3, 4, 3, deepest};

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

/// What sentences of its kind test, whatever their hash.
Test test_of(const Candidate& c) {
  const int source = static_cast<int>(c.source.tokens.size()),
            target = static_cast<int>(c.target.tokens.size());
  if (c.agreement.distance > 12 || c.depth > deepest || c.agreement.attractors > 3) return Test::none;
  const bool deep = c.depth > 2, several = c.agreement.attractors > 1, combined = c.derivation.held_out != 0;
  const bool longer = within(source, 21, 40) && within(target, 21, 40);
  const bool usual_length = within(source, 5, 20) && within(target, 5, c.depth == deepest ? 25 : 20);
  if (!longer && !usual_length) return Test::none;
  if (deep + several + combined + longer > 1) return Test::none;
  return deep       ? Test::depth
         : several  ? Test::attractors
         : combined ? Test::composition
         : longer   ? Test::length
                    : Test::usual;
}

/// How much of the sentences that hold several phenomena go to each: the rare ones get more.
constexpr std::array<int, phenomenon_names.size()> weights{2, 1, 1, 1, 2, 6, 2, 4, 6, 24, 6, 2};

/// One of the phenomena of a sentence, by its hash; "" where there is none.
std::string_view phenomenon_of(const std::vector<Probe>& probes, std::uint64_t hash) {
  std::array<int, weights.size()> shares{};
  for (const Probe& probe : probes)
    shares[static_cast<std::size_t>(probe.phenomenon)] = weights[static_cast<std::size_t>(probe.phenomenon)];
  const int all = std::accumulate(shares.begin(), shares.end(), 0);
  if (all == 0) return "";
  auto left = static_cast<int>((hash >> 32) % static_cast<std::uint64_t>(all));
  std::size_t i = 0;
  for (; left >= shares[i]; ++i) left -= shares[i];
  return phenomenon_names[i];
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
  pair.held_out = c.derivation.held_out != 0;
  return pair;
}

std::uint64_t hash_of(const Side& side) {
  RngKey key;
  for (const std::string_view token : side.tokens) key = key.fold(token);
  return key.value;
}

/// Whether the candidate is a pair of the split, and if it is, what it tests.
bool belongs(Candidate& c, const SplitRow& row, std::uint64_t sentence, std::vector<Probe>& found) {
  const unsigned share = sentence % all_shares;
  if (share < row.begin || share >= row.end) return false;
  if (row.test == Test::usual && !within(static_cast<int>(c.source.tokens.size()), 5, 20)) return false;
  c.translate();
  if (test_of(c) != row.test) return false;
  found = probes(c.derivation.tree, c.target);
  return row.split.kind != SplitKind::phenomenon || phenomenon_of(found, sentence) == row.split.name;
}

}  // namespace

std::span<const Split> splits() { return split_list(); }

std::string split_names() {
  std::string names;
  for (const Split& split : split_list()) names.append(names.empty() ? "" : ", ").append(split.name);
  return names;
}

const Split& find_split(std::string_view name) {
  for (const Split& split : split_list())
    if (split.name == name) return split;
  throw Error(concat("grammar: no split \"", name, "\", expected one of ", split_names()));
}

Generator::Generator(std::string_view split, std::uint64_t seed)
    : split_(static_cast<int>(&find_split(split) - split_list().data())),
      key_(RngKey{seed}.fold("grammar").fold(split).value) {}

Pair Generator::next() {
  constexpr int tries = 1'000'000;
  const SplitRow& row = split_table[split_];
  // One after the other, so that there are as many of each: some are far rarer than others.
  const Combinations wanted =
      row.test == Test::composition ? combinations[seen_.size() % combinations.size()] : 0;
  const int depth = row.test == Test::depth ? depths[seen_.size() % depths.size()] : 0;
  const Profile& profile = depth > 3 ? deeper_sentences : *row.profile;
  for (int i = 0; i < tries; ++i) {
    RandomStream random(RngKey{key_}.fold(candidate_++));
    Derivation derivation = sample(profile, random, wanted);
    if ((derivation.held_out & wanted) != wanted) continue;
    if (depth != 0 && grammar::depth(derivation.tree) != depth) continue;
    Candidate candidate(std::move(derivation));
    std::vector<Probe> found;
    if (!belongs(candidate, row, hash_of(candidate.source), found)) continue;
    Pair pair = annotate(std::move(candidate), std::move(found));
    if (seen_.insert(text(pair.source)).second) return pair;
  }
  throw DataError(concat("grammar: no further sentence of split ", row.split.name, " after ", seen_.size()));
}

std::vector<Pair> generate(std::string_view split, int size, std::uint64_t seed) {
  Generator generator(split, seed);
  std::vector<Pair> pairs;
  for (int i = 0; i < size; ++i) pairs.push_back(generator.next());
  return pairs;
}

}  // namespace polyhead::data::grammar
