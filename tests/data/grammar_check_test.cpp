#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "grammar_check.h"
#include "polyhead/core/parallel.h"
#include "polyhead/data/grammar/grammar.h"

namespace polyhead::data {
namespace {

using Tokens = std::vector<std::string>;

Tokens tokens(const std::string& line) {
  Tokens result(1);
  for (const char c : line)
    if (c == ' ')
      result.emplace_back();
    else
      result.back() += c;
  return result;
}

// The checker itself.

TEST(GrammarCheck, TakesGerman) {
  for (const char* line : {
           "der kleine Prinz schläft .",
           "die Lehrer haben den alten Studenten , dem Anna hilft , eingeladen .",
           "gestern hat eine Frau mit dem Fernrohr die Pferde gesehen .",
           "Peter weiß , dass wir den Brief aufmachen können .",
           "die Katze frisst keinen neuen Apfel , weil er nicht gut ist .",
           "weil Tom lacht , macht Maria die Kiste auf und Paul ist gelaufen .",
           "ich habe nicht den Hund , sondern die Katze gesehen .",
           "das Kind legt die Eier unter den Tisch .",
           "sie kennt die Pflanzen in den Gärten .",
           "die Frau , die alte Männer kennt , muss ankommen .",
       })
    EXPECT_TRUE(check::grammatical(tokens(line))) << line;
}

TEST(GrammarCheck, RefusesWhatIsNoGerman) {
  for (const char* line : {
           "die kleine Prinz schläft .",                 // gender
           "der klein Prinz schläft .",                  // ending
           "den kleinen Prinzen schläft .",              // case of a subject
           "der kleine Prinz schlafen .",                // number
           "ich schläft .",                              // person
           "Anna hilft den Mann .",                      // government
           "Anna hat der Studenten gesehen .",           // weak noun
           "Anna hat den Student gesehen .",             //
           "Anna ist den Hund gesehen .",                // auxiliary
           "Anna hat angekommen .",                      //
           "Anna hat gesehen den Hund .",                // bracket
           "Anna macht auf die Kiste .",                 // particle
           "Anna macht die Kiste an .",                  //
           "gestern Anna hat geschlafen .",              // second verb
           "Anna weiß , dass Peter kennt den Hund .",    // last verb
           "Anna weiß , dass Peter ist klein .",         //
           "Anna weiß dass Peter schläft .",             // comma
           "Anna kennt , dass Peter schläft .",          // sense
           "der Hund isst den Apfel .",                  //
           "Anna weiß den Mann .",                       //
           "Anna weiß die Frau .",                       //
           "eine Junge schläft .",                       // declined as an adjective
           "Anna kennt die Fabrik in dem Garten .",      //
           "Anna sieht mit dem Hut den Mann .",          // attachment
           "Anna sieht den Mann in das Haus .",          //
           "Anna dankt dem Mann in das Haus .",          //
           "Anna schläft in das Haus .",                 //
           "das Kind legt die Hüte unter dem Tisch .",   // goal
           "das Kind sieht die Eier unter den Tisch .",  // place
           "der Mann , die schläft , lacht .",           // relative pronoun
           "der Mann , dem den Hund sieht , lacht .",    //
           "der Mann neben einer Frau , das schläft , lacht .",
           "Anna hat keinen Hund nicht gesehen .",             // kein
           "Anna hat den Hund , sondern die Katze gesehen .",  //
           "Anna schläft",                                     // end
           "Anna schläft . .",
           ".",
       })
    EXPECT_FALSE(check::grammatical(tokens(line), true)) << line;
}

TEST(GrammarCheck, KnowsWhatGermanAllowsBesides) {
  for (const char* line : {
           "den Mann sehen die Frauen .",
           "Anna weiß , dass Peter schläft heute .",
           "Anna weiß , dass Peter schläft neben dem Haus .",
           "Anna kennt den Mann , den Peter sieht mit dem Fernrohr .",
           "Anna sieht den Mann mit dem Fernrohr .",
           "Anna macht die Tasche mit dem Schlüssel auf .",
           "der Prinz neben einer Frau , der schläft , lacht .",
           "Anna wirft die Hüte in dem Haus .",
           "Anna lädt eine Frau in die Stadt ein .",
           "Anna hilft dem Hund in das Haus .",
           "Anna legt ein Ei in einem Garten .",
           "Anna hat nicht einen Hund gesehen .",
           "Anna hat nicht den Hund gesehen .",
           "Peter frisst den Apfel .",
           "Männer danken einem Mann , der hat den Frauen gedankt .",
           "Männer danken einem Mann , den kann Anna sehen und Paul lacht .",
           "Anna weiß ein Dorf .",
           "Anna weiß den Prinzen neben den Tischen .",
           "in der Stadt weiß Anna einen Lehrer .",
           "Anna sieht das Dorf , weil Paul es weiß .",
       }) {
    EXPECT_FALSE(check::grammatical(tokens(line))) << line;
    EXPECT_TRUE(check::grammatical(tokens(line), true)) << line;
  }
}

// What is checked of a pair. Each check gives what is wrong, or "".

bool is_tree(const Dependencies& tree, std::size_t size) {
  if (tree.heads.size() != size || tree.labels.size() != size) return false;
  if (std::count(tree.heads.begin(), tree.heads.end(), -1) != 1) return false;
  for (std::size_t i = 0; i < size; ++i) {
    std::size_t steps = 0;
    for (int at = static_cast<int>(i); at >= 0; at = tree.heads[static_cast<std::size_t>(at)])
      if (at >= static_cast<int>(size) || ++steps > size) return false;
    if ((tree.heads[i] < 0) != (tree.labels[i] == "root") || tree.labels[i].empty()) return false;
  }
  return true;
}

/// Clauses around a token, by the labels on its way to the root.
int depth_of(const Dependencies& tree, int token) {
  int depth = 0;
  for (int at = token; at >= 0; at = tree.heads[static_cast<std::size_t>(at)]) {
    const std::string_view label = tree.labels[static_cast<std::size_t>(at)];
    depth += label == "ccomp" || label == "advcl" || label == "acl:relcl" ? 1 : 0;
  }
  return depth;
}

/// A German noun's number is that of the English noun that it translates: men, women, children, and what ends in s.
bool is_plural(const Pair& pair, int target) {
  for (const Link& link : pair.alignment) {
    if (link.target != target) continue;
    const std::string& word = pair.source[static_cast<std::size_t>(link.source)];
    return !check::is_name(word) && (word == "men" || word == "women" || word == "children" || word == "we" ||
                                     word == "they" || word.back() == 's');
  }
  return false;
}

bool is_noun(const std::string& word) { return check::gender(word) != 0 || check::is_name(word); }

/// Nouns between two tokens that do not have the number of the subject.
int attractors(const Pair& pair, int subject, int verb, bool plural) {
  int count = 0;
  for (int i = std::min(subject, verb) + 1; i < std::max(subject, verb); ++i)
    count += is_noun(pair.target[static_cast<std::size_t>(i)]) && is_plural(pair, i) != plural ? 1 : 0;
  return count;
}

Tokens without_commas(Tokens line) {
  std::erase(line, ",");
  return line;
}

/// Whether one line is the other with one word in another place; commas follow by rule.
bool one_word_moved(const Tokens& right, const Tokens& wrong, const std::string& word) {
  const auto without = [&](const Tokens& line) {
    std::set<Tokens> rests;
    const Tokens words = without_commas(line);
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == word) {
        Tokens rest = words;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        rests.insert(rest);
      }
    return rests;
  };
  const auto a = without(right), b = without(wrong);
  return std::any_of(a.begin(), a.end(), [&](const Tokens& rest) { return b.contains(rest); });
}

/// Whether one line is the other with a word taken out.
bool one_word_less(const Tokens& more, const Tokens& less, const std::string& word) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (more[i] != word) continue;
    Tokens rest = more;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    if (rest == less) return true;
  }
  return false;
}

std::size_t differences(const Tokens& a, const Tokens& b) {
  std::size_t count = a.size() == b.size() ? 0 : 1000;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a[i] == b[i] ? 0 : 1;
  return count;
}

bool same_words(const Tokens& a, const Tokens& b) {
  std::multiset<std::string> x, y;
  for (const std::string& word : without_commas(a)) x.insert(word);
  for (const std::string& word : without_commas(b)) y.insert(word);
  return x == y;
}

/// "nicht den Hund, sondern", with nicht elsewhere.
bool is_nicht_moved(const Pair& pair, const Probe& p) {
  return p.slot == p.word && pair.target[static_cast<std::size_t>(p.word)] == "nicht";
}

/// Whether the verb's instrument, after the finite verb of a main clause, has moved before it, where it is the subject's if
/// anything: nothing but the subject can be there. Before or after an object, or any word of the middle, it can be either's.
bool is_instrument_moved(const Pair& pair, const Probe& p) {
  const auto slot = p.contrast.begin() + p.slot;
  const auto mit = std::find(pair.target.begin() + p.slot, pair.target.end(), "mit");
  if (p.cue < 0 || p.slot == 0 || mit == pair.target.end() || *slot != "mit" ||
      !same_words(pair.target, p.contrast))
    return false;
  const auto length = pair.target.begin() + p.word + 1 - mit;  // to the noun
  Tokens moved = pair.target;
  std::rotate(moved.begin() + p.slot, moved.begin() + (mit - pair.target.begin()),
              moved.begin() + (mit - pair.target.begin() + length));
  const std::set<std::string> settled{"Fernrohr", "Fernrohren", "Fernrohre", "Schlüssel", "Schlüsseln"};
  const auto finite = static_cast<std::size_t>(p.slot);
  // The finite verb of the clause at the slot: what the instrument's verb is, or depends on it.
  const std::string_view label = pair.target_tree.labels[finite];
  const bool verb = p.slot == p.cue || (label == "aux" && pair.target_tree.heads[finite] == p.cue);
  return verb && length >= 2 && moved == p.contrast &&
         settled.contains(pair.target[static_cast<std::size_t>(p.word)]);
}

std::string stem(const std::string& adjective) {
  for (const char* stem : {"alt", "klein", "gut", "neu", "schön"})
    if (adjective.rfind(stem, 0) == 0) return stem;
  return "";
}

/// keinen alten Hund and den alten Hund nicht, of which the source says one: nothing else is different.
bool scope_differs(const Pair& pair, const Probe& p) {
  const auto slot = static_cast<std::size_t>(p.slot);
  const std::string& article = pair.target[slot];
  const auto says = [&](const char* word) {
    return std::any_of(pair.alignment.begin(), pair.alignment.end(), [&](const Link& link) {
      return link.target == p.slot && pair.source[static_cast<std::size_t>(link.source)] == word;
    });
  };
  const bool kein = article.rfind("kein", 0) == 0;
  if (kein ? !says("not") || says("the")
           : !says("the") || pair.target[static_cast<std::size_t>(p.word)] != "nicht")
    return false;
  const Tokens& with_kein = kein ? pair.target : p.contrast;
  const Tokens& with_nicht = kein ? p.contrast : pair.target;
  if (with_kein[slot].rfind("kein", 0) != 0 || with_nicht[slot][0] != 'd') return false;
  std::size_t i = slot + 1;
  for (; !stem(with_kein[i]).empty(); ++i)
    if (stem(with_kein[i]) != stem(with_nicht[i])) return false;
  const auto rest = [&](const Tokens& line) {
    return without_commas({line.begin() + static_cast<std::ptrdiff_t>(i), line.end()});
  };
  return is_noun(with_kein[i]) && one_word_less(rest(with_nicht), rest(with_kein), "nicht");
}

/// Whether the contrast differs from the target as its phenomenon says, and in nothing else.
bool differs_rightly(const Pair& pair, const Probe& p) {
  const std::string& word = pair.target[static_cast<std::size_t>(p.word)];
  const bool one = p.slot == p.word && differences(pair.target, p.contrast) == 1;
  switch (p.phenomenon) {
    case Phenomenon::names:
      return one && check::is_name(word) && check::is_name(p.contrast[static_cast<std::size_t>(p.slot)]) &&
             std::find(pair.target.begin(), pair.target.end(),
                       p.contrast[static_cast<std::size_t>(p.slot)]) == pair.target.end();
    case Phenomenon::articles:
    case Phenomenon::agreement:
    case Phenomenon::particles:
    case Phenomenon::relatives:
    case Phenomenon::pronouns:
      return one;
    case Phenomenon::senses:  // of verbs: nothing but sense tells a Pflanze in a garden from a Fabrik
      return one && !is_noun(word);
    case Phenomenon::verb_final:
    case Phenomenon::inversion:
    case Phenomenon::bracket:
      return one_word_moved(pair.target, p.contrast, word);
    case Phenomenon::negation:
      return is_nicht_moved(pair, p) ? one_word_moved(pair.target, p.contrast, word) : scope_differs(pair, p);
    case Phenomenon::attachment:
      break;
  }
  if (same_words(pair.target, p.contrast)) return is_instrument_moved(pair, p);
  for (std::size_t i = 0; i < pair.target.size(); ++i) {
    const bool of_phrase = p.slot <= static_cast<int>(i) && static_cast<int>(i) <= p.word;
    if (!of_phrase && pair.target[i] != p.contrast[i]) return false;
  }
  return pair.target.size() == p.contrast.size();
}

/// What German a pronoun can stand for.
char gender_of_pronoun(const std::string& word) {
  if (word == "er" || word == "ihn" || word == "ihm") return 'm';
  if (word == "sie" || word == "ihr" || word == "ihnen") return 'f';  // any plural is sie
  return word == "es" ? 'n' : char{0};
}

bool pronoun_is_right(const Pair& pair, const Probe& p) {
  // After "nicht den Apfel, sondern ein Ei", what is spoken of?
  if (std::find(pair.target.begin(), pair.target.end(), "sondern") != pair.target.end()) return false;
  // es can be all that was said before.
  const char wrong = gender_of_pronoun(p.contrast[static_cast<std::size_t>(p.slot)]);
  if (wrong == 'n') return false;
  if (gender_of_pronoun(pair.target[static_cast<std::size_t>(p.word)]) !=
      check::gender(pair.target[static_cast<std::size_t>(p.cue)]))
    return false;
  for (std::size_t i = 0; i < pair.target.size(); ++i) {
    const char gender = check::gender(pair.target[i]);
    // Who is spoken of already, "er hat die Kiste aufgemacht, weil er": ihm can be es, but need not.
    if (static_cast<int>(i) != p.word && wrong == gender_of_pronoun(pair.target[i])) return false;
    // Any plural is sie.
    if (gender != 0 && wrong == (is_plural(pair, static_cast<int>(i)) ? 'f' : gender)) return false;
    // Lena, Anna, Emma, Maria, Lisa
    if (check::is_name(pair.target[i]) && wrong == (pair.target[i].back() == 'a' ? 'f' : 'm')) return false;
  }
  return wrong != 0;
}

/// Readings that are not of one sentence alone.
bool may_be_read_otherwise(const Pair& pair, const Probe& p) {
  const auto begin = pair.target.begin(), slot = begin + p.slot;
  const auto has = [](auto from, auto to, std::initializer_list<const char*> words) {
    return std::any_of(from, to, [&](const std::string& token) {
      return std::find(words.begin(), words.end(), token) != words.end();
    });
  };
  const auto conjunction = std::find(begin, slot, "und");
  if (conjunction != slot) {
    // "Emma kann Anna anrufen und ich lachen", "weil sie gut ist und in einer Stadt Peter schläft"
    const bool modal = has(begin, conjunction, {"kann", "können", "muss", "müssen"});
    const bool subordinate = has(begin, conjunction, {"dass", "weil", "obwohl"});
    const bool of_second = std::count(conjunction, slot, ",") == 0;
    if (p.phenomenon == Phenomenon::inversion && of_second && (modal || subordinate)) {
      const auto before = std::find(std::make_reverse_iterator(conjunction), pair.target.rend(), ",");
      if (before != pair.target.rend() && has(before.base(), conjunction, {"dass", "weil", "obwohl"}))
        return true;
    }
    if (p.phenomenon == Phenomenon::agreement && modal && of_second &&
        pair.target[static_cast<std::size_t>(p.cue)] == "ich" && *(conjunction + 1) == "ich" &&
        !has(begin, conjunction, {","}))
      return true;
  }
  // "hat gegessen nicht die Eier, sondern"
  if (p.phenomenon == Phenomenon::bracket && p.contrast[static_cast<std::size_t>(p.slot) + 1] == "nicht" &&
      has(slot, pair.target.end(), {"sondern"}))
    return true;
  // "liebt keine Frauen", "liebt die Frauen nicht"
  return p.phenomenon == Phenomenon::negation &&
         pair.target[static_cast<std::size_t>(p.slot)].starts_with("kein") &&
         p.contrast[static_cast<std::size_t>(p.slot)] == "die" && is_plural(pair, p.cue) &&
         pair.target.size() < 8 && has(begin, pair.target.end(), {"liebt", "lieben", "kennt", "kennen"});
}

std::string problem_of(const Pair& pair, const Probe& p) {
  const int size = static_cast<int>(pair.target.size());
  if (p.slot < 0 || p.slot >= size || p.word < 0 || p.word >= size || p.cue < -1 || p.cue >= size)
    return "outside of the sentence";
  if ((p.cue < 0) != (p.phenomenon == Phenomenon::names)) return "cue";
  if (p.distance != (p.cue < 0 ? 0 : std::abs(p.word - p.cue))) return "distance";
  if (p.depth != depth_of(pair.target_tree, p.word)) return "depth";
  const auto slot = static_cast<std::size_t>(p.slot);
  if (p.contrast.size() <= slot ||
      !std::equal(pair.target.begin(), pair.target.begin() + p.slot, p.contrast.begin()) ||
      p.contrast[slot] == pair.target[slot])
    return "slot";
  if (!differs_rightly(pair, p)) return "more differs than the wrong form";
  if (may_be_read_otherwise(pair, p)) return "can be read otherwise";
  if (p.phenomenon == Phenomenon::agreement) {
    const std::string& subject = pair.target[static_cast<std::size_t>(p.cue)];
    // A relative pronoun has the number of its antecedent, which its clause depends on.
    int noun = p.cue;
    if (!is_noun(subject) && subject != "wir" && subject != "ich" && subject != "er" && subject != "es") {
      int clause = p.cue;
      while (pair.target_tree.labels[static_cast<std::size_t>(clause)] != "acl:relcl")
        clause = pair.target_tree.heads[static_cast<std::size_t>(clause)];
      noun = pair.target_tree.heads[static_cast<std::size_t>(clause)];
    }
    if (p.attractors != attractors(pair, p.cue, p.word, is_plural(pair, noun))) return "attractors";
    if (p.distance < 1 || p.distance > 12) return "distance of agreement";
  } else if (p.attractors != 0) {
    return "attractors of another phenomenon";
  }
  if (p.phenomenon == Phenomenon::pronouns) return pronoun_is_right(pair, p) ? "" : "pronoun";
  // kein in place of nicht is German, but says something else.
  if (p.phenomenon == Phenomenon::negation && !is_nicht_moved(pair, p))
    return check::grammatical(p.contrast) ? "" : "no German";
  // The subject's phrase with "mit" is German, but not what the source says.
  if (p.phenomenon == Phenomenon::attachment && same_words(pair.target, p.contrast)) return "";
  if (p.phenomenon != Phenomenon::names && check::grammatical(p.contrast, true)) return "is right too";
  return "";
}

std::string problem_of(const Pair& pair) {
  if (!check::grammatical(pair.target)) return "ungrammatical";
  if (!is_tree(pair.source_tree, pair.source.size())) return "source heads form no tree";
  if (!is_tree(pair.target_tree, pair.target.size())) return "target heads form no tree";
  for (const Link& link : pair.alignment)
    if (link.source < 0 || link.source >= static_cast<int>(pair.source.size()) || link.target < 0 ||
        link.target >= static_cast<int>(pair.target.size()))
      return "alignment outside of the sentence";
  std::vector<bool> linked(pair.target.size());
  for (const Link& link : pair.alignment) linked[static_cast<std::size_t>(link.target)] = true;
  for (std::size_t i = 0; i < linked.size(); ++i)
    if (!linked[i] && pair.target[i] != ",") return "no link of " + pair.target[i];
  int depth = 0;
  for (int i = 0; i < static_cast<int>(pair.target.size()); ++i)
    depth = std::max(depth, depth_of(pair.target_tree, i));
  if (depth != pair.depth) return "depth";
  for (const Probe& probe : pair.probes) {
    if (probe.attractors > pair.attractors) return "attractors of the pair";
    const std::string problem = problem_of(pair, probe);
    if (!problem.empty())
      return std::string(name(probe.phenomenon)) + ": " + problem + ": " + text(probe.contrast);
  }
  return "";
}

TEST(GrammarCheck, EverySentenceIsRightAndEveryContrastWrong) {
  struct Part {
    std::string_view split;
    int size;
    std::uint64_t seed;
  };
  // More than 100,000 sentences of all splits.
  std::vector<Part> parts;
  for (const grammar::Split& split : grammar::splits()) {
    const bool usual = split.name == "train" || split.name == "test" || split.name == "valid";
    const bool generalisation = split.name == "length" || split.name == "depth" ||
                                split.name == "composition" || split.name == "attractors";
    for (std::uint64_t seed = 21; seed < (usual ? 25u : 22u); ++seed)
      parts.push_back({split.name,
                       split.name == "train"   ? 18000
                       : usual                 ? 1000
                       : split.name == "depth" ? 2000
                       : generalisation        ? 5000
                                               : 250,
                       seed});
  }
  std::mutex mutex;
  std::int64_t pairs = 0;
  std::array<std::int64_t, phenomenon_names.size()> probes{};
  int shown = 0;
  parallel_for(2, static_cast<std::int64_t>(parts.size()), [&](std::int64_t i, int) {
    const Part& part = parts[static_cast<std::size_t>(i)];
    grammar::Generator generator(part.split, part.seed);
    for (int k = 0; k < part.size; ++k) {
      const Pair pair = generator.next();
      const std::string problem = problem_of(pair);
      const std::lock_guard lock(mutex);
      ++pairs;
      for (const Probe& probe : pair.probes) ++probes[static_cast<std::size_t>(probe.phenomenon)];
      if (!problem.empty() && ++shown <= 20)
        ADD_FAILURE() << part.split << ": " << text(pair.source) << "\n"
                      << text(pair.target) << "\n"
                      << problem;
    }
  });
  EXPECT_EQ(shown, 0);
  EXPECT_GE(pairs, 100'000);
  for (std::size_t i = 0; i < probes.size(); ++i) EXPECT_GT(probes[i], 2000) << phenomenon_names[i];
}

}  // namespace
}  // namespace polyhead::data
