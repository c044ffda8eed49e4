#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "data_files.h"
#include "polyhead/core/error.h"
#include "polyhead/core/rng.h"
#include "polyhead/data/grammar/grammar.h"

namespace polyhead::data::grammar {
namespace {

using ::testing::ElementsAre;

bool has(const Pair& pair, Phenomenon phenomenon) {
  return std::any_of(pair.probes.begin(), pair.probes.end(),
                     [&](const Probe& probe) { return probe.phenomenon == phenomenon; });
}

int longest(const Pair& pair) { return static_cast<int>(std::max(pair.source.size(), pair.target.size())); }
int shortest(const Pair& pair) { return static_cast<int>(std::min(pair.source.size(), pair.target.size())); }

/// All that a pair carries, as one number.
std::uint64_t digest(const Pair& pair) {
  std::string all = text(pair.source) + '\n' + text(pair.target) + '\n';
  const auto add = [&](const auto&... numbers) { (all.append(std::to_string(numbers)).append(" "), ...); };
  for (const Link& link : pair.alignment) add(link.source, link.target, static_cast<int>(link.sure));
  for (const Dependencies* tree : {&pair.source_tree, &pair.target_tree})
    for (std::size_t i = 0; i < tree->heads.size(); ++i) {
      add(tree->heads[i]);
      all += tree->labels[i];
    }
  for (const Probe& p : pair.probes) {
    add(static_cast<int>(p.phenomenon), p.slot, p.word, p.cue, p.distance, p.attractors, p.depth);
    all += text(p.contrast);
  }
  add(pair.depth, pair.attractors, static_cast<int>(pair.held_out));
  return hash(all);
}

TEST(Grammar, ExamplesCarryWhatIsKnownAboutThem) {
  const Pair pair = generate("test", 87, 1).back();
  EXPECT_EQ(text(pair.source), "the cat does not eat the apple although it is beautiful .");
  EXPECT_EQ(text(pair.target), "die Katze frisst den Apfel nicht , obwohl er schön ist .");
  EXPECT_THAT(pair.source_tree.heads, ElementsAre(1, 4, 4, 4, -1, 6, 4, 10, 10, 10, 4, 4));
  EXPECT_THAT(pair.source_tree.labels, ElementsAre("det", "nsubj", "aux", "advmod", "root", "det", "obj",
                                                   "mark", "nsubj", "cop", "advcl", "punct"));
  EXPECT_THAT(pair.target_tree.heads, ElementsAre(1, 2, -1, 4, 2, 2, 9, 9, 9, 2, 9, 2));
  EXPECT_THAT(pair.target_tree.labels, ElementsAre("det", "nsubj", "root", "det", "obj", "advmod", "punct",
                                                   "mark", "nsubj", "advcl", "cop", "punct"));
  const std::vector<Link> links{{0, 0, true}, {1, 1, true},  {2, 2, false}, {4, 2, true},
                                {5, 3, true}, {6, 4, true},  {3, 5, true},  {7, 7, true},
                                {8, 8, true}, {10, 9, true}, {9, 10, true}, {11, 11, true}};
  EXPECT_EQ(pair.alignment, links);
  const auto wrong = [&](Phenomenon phenomenon) {
    const auto probe = std::find_if(pair.probes.begin(), pair.probes.end(),
                                    [&](const Probe& p) { return p.phenomenon == phenomenon; });
    return probe == pair.probes.end() ? "" : text(probe->contrast);
  };
  EXPECT_EQ(wrong(Phenomenon::articles), "das Katze frisst den Apfel nicht , obwohl er schön ist .");
  EXPECT_EQ(wrong(Phenomenon::agreement), "die Katze fressen den Apfel nicht , obwohl er schön ist .");
  EXPECT_EQ(wrong(Phenomenon::senses), "die Katze isst den Apfel nicht , obwohl er schön ist .");
  EXPECT_EQ(wrong(Phenomenon::negation), "die Katze frisst keinen Apfel , obwohl er schön ist .");
  EXPECT_EQ(wrong(Phenomenon::verb_final), "die Katze frisst den Apfel nicht , obwohl er ist schön .");
  EXPECT_EQ(wrong(Phenomenon::pronouns), "");  // sie is the cat, es may be all that was said
  EXPECT_EQ(wrong(Phenomenon::bracket), "");
  const Probe& verb = pair.probes[1];
  EXPECT_EQ(verb.phenomenon, Phenomenon::agreement);
  EXPECT_THAT((std::vector{verb.slot, verb.word, verb.cue, verb.distance, verb.attractors, verb.depth}),
              ElementsAre(2, 2, 1, 1, 0, 0));
}

/// https://universaldependencies.org/u/overview/syntax.html: conjunctions and commas belong to the conjunct after them,
/// and a verb's only object is obj in any case.
TEST(Grammar, DependenciesAreUniversal) {
  std::set<std::string> seen;
  for (const Pair& pair : generate("test", 600, 1)) {
    const auto has_word = [&](const char* word) {
      return std::count(pair.target.begin(), pair.target.end(), word) == 1;
    };
    for (const Dependencies* tree : {&pair.source_tree, &pair.target_tree})
      EXPECT_EQ(std::count(tree->labels.begin(), tree->labels.end(), "iobj"), 0);
    const auto conjunct = [&](std::size_t conjunction) {
      const auto head = static_cast<std::size_t>(pair.target_tree.heads[conjunction]);
      EXPECT_EQ(pair.target_tree.labels[conjunction], "cc");
      EXPECT_EQ(pair.target_tree.labels[head], "conj");
      EXPECT_GT(head, conjunction);
      return static_cast<int>(head);
    };
    for (std::size_t i = 0; i < pair.target.size(); ++i) {
      if (pair.target[i] == "und") conjunct(i);
      if (pair.target[i] != "sondern") continue;
      EXPECT_EQ(pair.target_tree.heads[i - 1], conjunct(i)) << text(pair.target);
    }
    for (std::size_t i = 0; i < pair.source.size(); ++i)
      if (pair.source[i] == "and" || pair.source[i] == "but") {
        EXPECT_EQ(pair.source_tree.labels[static_cast<std::size_t>(pair.source_tree.heads[i])], "conj");
      }
    for (const char* word : {"und", "sondern", "dankt"})
      if (has_word(word)) seen.insert(word);
  }
  EXPECT_THAT(seen, ElementsAre("dankt", "sondern", "und"));
}

TEST(Grammar, SameSeedGivesTheSameBytes) {
  const std::map<std::string_view, std::uint64_t> committed{{"train", 1167507947662979758u},
                                                            {"pronouns", 7820800950805849989u},
                                                            {"length", 697323251225205905u},
                                                            {"depth-valid", 9200663084000762788u}};
  for (const auto& [split, expected] : committed) {
    std::uint64_t all = 0;
    for (const Pair& pair : generate(split, 300, 7)) all = RngKey{all}.fold(digest(pair)).value;
    EXPECT_EQ(all, expected) << split;
  }
  EXPECT_NE(text(generate("train", 1, 1)[0].source), text(generate("train", 1, 2)[0].source));
}

/// Whoever changes the language raises its version, and puts the digest of the new one here: results of models of the old
/// one must not count as results of the new.
TEST(Grammar, IsThatOfItsVersion) {
  std::uint64_t all = 0;
  for (const Split& split : splits())
    for (const Pair& pair : generate(split.name, 150, 11)) all = RngKey{all}.fold(digest(pair)).value;
  EXPECT_EQ(std::make_pair(version, all), std::make_pair(3, 3989449819800104639u));
}

TEST(Grammar, ALongerSplitBeginsAsAShorterOne) {
  const std::vector<Pair> few = generate("train", 50, 3), many = generate("train", 200, 3);
  for (std::size_t i = 0; i < few.size(); ++i) EXPECT_EQ(digest(few[i]), digest(many[i]));
}

TEST(Grammar, NoSentenceIsInTwoSplits) {
  std::unordered_map<std::string, std::string_view> home;
  std::size_t pairs = 0;
  for (const Split& split : splits())
    for (const std::uint64_t seed : {1, 2}) {  // other seeds do not mix the splits either
      std::set<std::string> own;
      for (const Pair& pair : generate(split.name, split.name == "train" ? 20000 : split.size / 4, seed)) {
        const std::string source = text(pair.source);
        EXPECT_TRUE(own.insert(source).second) << source;
        EXPECT_EQ(home.try_emplace(source, split.name).first->second, split.name) << source;
        ++pairs;
      }
    }
  EXPECT_GT(pairs, 48000u);
}

TEST(Grammar, TrainingHasEveryWordOfTheOtherSplits) {
  for (const std::uint64_t seed : {1, 11, 12}) {
    std::set<std::string> source, target;
    for (const Pair& pair : generate("train", 20000, seed)) {
      source.insert(pair.source.begin(), pair.source.end());
      target.insert(pair.target.begin(), pair.target.end());
    }
    for (const Split& split : splits())
      for (const Pair& pair : generate(split.name, split.size / 10, seed)) {
        for (const std::string& word : pair.source) EXPECT_TRUE(source.contains(word)) << split.name << word;
        for (const std::string& word : pair.target) EXPECT_TRUE(target.contains(word)) << split.name << word;
      }
  }
}

TEST(Grammar, TrainingNeverSeesWhatGeneralisationTests) {
  for (const char* split : {"train", "valid", "test", "agreement", "relatives"})
    for (const Pair& pair : generate(split, 1000, 5)) {
      EXPECT_LE(pair.depth, 2);
      EXPECT_LE(pair.attractors, 1);
      EXPECT_FALSE(pair.held_out);
      EXPECT_GE(shortest(pair), 5);
      EXPECT_LE(longest(pair), 20);
    }
}

TEST(Grammar, GeneralisationDiffersInOneRespect) {
  for (const std::string name : {"length", "depth", "composition", "attractors"})
    for (const std::string& split : {name, name + "-valid"})
      for (const Pair& pair : generate(split, 300, 5)) {
        EXPECT_EQ(pair.depth >= 3 && pair.depth <= 5, name == "depth");
        EXPECT_EQ(pair.attractors >= 2 && pair.attractors <= 3, name == "attractors");
        EXPECT_EQ(pair.held_out, name == "composition");
        EXPECT_EQ(shortest(pair) >= 21 && longest(pair) <= 40, name == "length") << text(pair.source);
        if (name != "length") {
          EXPECT_LE(pair.source.size(), 20u);
          EXPECT_LE(pair.target.size(), pair.depth == 5 ? 25u : 20u);
        }
      }
}

TEST(Grammar, DepthIsSeldomLength) {
  std::map<int, int> depths;
  for (const Pair& pair : generate("depth", 200, 5)) ++depths[pair.depth];
  EXPECT_EQ(depths, (std::map<int, int>{{3, 100}, {4, 80}, {5, 20}}));
}

/// The combinations, spelled out: what train lacks and each pair of composition has.
TEST(Grammar, HeldOutCombinationsAreAbsentFromTraining) {
  const auto held = [](const Pair& pair) {
    const Dependencies& tree = pair.source_tree;
    const auto combined = [&](std::initializer_list<const char*> words, auto fits) {
      for (std::size_t i = 0; i < pair.source.size(); ++i)
        if (std::find(words.begin(), words.end(), pair.source[i]) != words.end() && fits(i)) return true;
      return false;
    };
    const auto label_of_clause = [&](std::size_t i) { return tree.labels[i]; };
    // The other noun of "not the teacher but the cat" is an object too.
    const auto object = [&](std::size_t i) { return tree.labels[i] == "obj" || tree.labels[i] == "conj"; };
    return std::array{
        combined({"teacher", "teachers", "cat", "cats"}, object),
        combined({"queen", "queens", "child", "children"},
                 [&](std::size_t i) { return tree.labels[i] == "nsubj"; }),
        combined({"horse", "horses"},
                 [&](std::size_t i) { return tree.labels[i] == "nmod" || tree.labels[i] == "obl"; }),
        combined({"buy", "buys", "bought", "call", "calls", "called"},
                 [&](std::size_t i) { return label_of_clause(i) == "acl:relcl"; }),
        combined({"help", "helps", "helped"}, [&](std::size_t i) { return label_of_clause(i) == "ccomp"; }),
        combined({"close", "closes", "closed"},
                 [&](std::size_t i) { return label_of_clause(i) == "advcl"; })};
  };
  const auto count = [&](const Pair& pair) {
    const auto all = held(pair);
    return std::count(all.begin(), all.end(), true);
  };
  for (const Pair& pair : generate("train", 5000, 9)) EXPECT_EQ(count(pair), 0) << text(pair.source);
  std::array<int, 6> pairs{};
  int several = 0;
  for (const Pair& pair : generate("composition", 1000, 9)) {
    const auto all = held(pair);
    for (std::size_t i = 0; i < all.size(); ++i) pairs[i] += all[i] ? 1 : 0;
    EXPECT_GE(count(pair), 1) << text(pair.source);
    several += count(pair) > 1 ? 1 : 0;
  }
  for (const int n : pairs) {
    EXPECT_GE(n, 160);
    EXPECT_LE(n, 400);
  }
  EXPECT_GE(several, 50);
}

TEST(Grammar, EachPhenomenonHasASplitOfItsOwn) {
  for (std::size_t i = 0; i < phenomenon_names.size(); ++i)
    for (const Pair& pair : generate(phenomenon_names[i], 100, 4))
      EXPECT_TRUE(has(pair, static_cast<Phenomenon>(i))) << text(pair.source);
}

TEST(Grammar, PhenomenaLengthsAndWordsAreSpreadAsDescribed) {
  const std::vector<Pair> pairs = generate("train", 20000, 1);
  std::map<Phenomenon, int> phenomena;
  std::map<std::string, int> english, german;
  std::map<std::size_t, int> lengths;
  for (const Pair& pair : pairs) {
    for (std::size_t i = 0; i < phenomenon_names.size(); ++i)
      phenomena[static_cast<Phenomenon>(i)] += has(pair, static_cast<Phenomenon>(i)) ? 1 : 0;
    for (const std::string& word : pair.source) ++english[word];
    for (const std::string& word : pair.target) ++german[word];
    ++lengths[pair.source.size()];
  }
  // Percent of the sentences.
  const std::vector<std::pair<int, int>> expected{{30, 45}, {85, 95}, {80, 92}, {35, 50}, {18, 30}, {8, 15},
                                                  {20, 32}, {12, 20}, {12, 22}, {2, 5},   {12, 22}, {12, 25}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const int percent = phenomena[static_cast<Phenomenon>(i)] / 200;
    EXPECT_GE(percent, expected[i].first) << phenomenon_names[i];
    EXPECT_LE(percent, expected[i].second) << phenomenon_names[i];
  }
  EXPECT_GE(english.size(), 150u);
  EXPECT_LE(english.size(), 250u);
  EXPECT_GE(german.size(), 150u);
  EXPECT_LE(german.size(), 250u);
  for (const auto* words : {&english, &german})
    for (const auto& [word, count] : *words) EXPECT_GE(count, 5) << word;
  for (std::size_t length = 5; length <= 20; ++length) EXPECT_GE(lengths[length], 50) << length;
}

TEST(Grammar, AgreementSpansDistancesAndAttractors) {
  std::map<int, int> distances, attractors;
  for (const char* split : {"agreement", "attractors", "length"})
    for (const Pair& pair : generate(split, 1000, 2))
      for (const Probe& probe : pair.probes)
        if (probe.phenomenon == Phenomenon::agreement) {
          ++distances[probe.distance];
          ++attractors[probe.attractors];
        }
  for (int distance = 1; distance <= 12; ++distance) EXPECT_GT(distances[distance], 5) << distance;
  EXPECT_EQ(distances.size(), 12u);
  for (int count = 0; count <= 3; ++count) EXPECT_GT(attractors[count], 20) << count;
  EXPECT_EQ(attractors.size(), 4u);
}

TEST(Grammar, NamesItsSplits) {
  EXPECT_EQ(find_split("test").size, 2000);
  EXPECT_EQ(message_of<Error>([] { find_split("trian"); }).substr(0, 63),
            "grammar: no split \"trian\", expected one of train, valid, test, ");
  EXPECT_EQ(splits().size(), 23u);
}

}  // namespace
}  // namespace polyhead::data::grammar
