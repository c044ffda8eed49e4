#include "grammar_check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <unordered_map>

namespace polyhead::data::check {
namespace {

// A set of cells case × (m, f, n, plural): bit 4·case + column.
using Cells = std::uint16_t;
constexpr Cells nominative = 0x00F, accusative = 0x0F0, dative = 0xF00, plural = 0x888;
constexpr Cells column(int g) { return static_cast<Cells>(0x111 << g); }

/// "mN fD" -> cells: a column (m, f, n, p) and the first letter of a case (N, A, D), any number of them.
Cells cells(std::string_view text) {
  Cells result = 0;
  int g = 0;
  for (const char c : text) {
    const auto small = std::string_view("mfnp").find(c), big = std::string_view("NAD").find(c);
    if (small != std::string_view::npos) g = static_cast<int>(small);
    if (big != std::string_view::npos)
      result = static_cast<Cells>(result | 1 << (4 * static_cast<int>(big) + g));
  }
  return result;
}

enum Kind : unsigned { person = 1, animal = 2, other = 4 };

struct NounForms {
  char gender;
  unsigned kind;
  const char* forms;  ///< form cells, form cells, ...
};
// Cells of singulars are given by the letter of the gender. No noun is declined as an adjective: a language with "Junge"
// has "die Junge", "eine Junge" and "das Junge" too, and no wrong article of it.
const NounForms noun_table[] = {
    {'m', person, "Mann mNAD, Männer pNA, Männern pD"},
    {'f', person, "Frau fNAD, Frauen pNAD"},
    {'n', person, "Kind nNAD, Kinder pNA, Kindern pD"},
    {'m', person, "Lehrer mNADpNA, Lehrern pD"},
    {'m', person, "Prinz mN, Prinzen mADpNAD"},
    {'m', person, "Student mN, Studenten mADpNAD"},
    {'f', person, "Königin fNAD, Königinnen pNAD"},
    {'m', animal, "Hund mNAD, Hunde pNA, Hunden pD"},
    {'f', animal, "Katze fNAD, Katzen pNAD"},
    {'n', animal, "Pferd nNAD, Pferde pNA, Pferden pD"},
    {'n', other, "Buch nNAD, Bücher pNA, Büchern pD"},
    {'m', other, "Brief mNAD, Briefe pNA, Briefen pD"},
    {'f', other, "Tasse fNAD, Tassen pNAD"},
    {'m', other, "Apfel mNAD, Äpfel pNA, Äpfeln pD"},
    {'n', other, "Ei nNAD, Eier pNA, Eiern pD"},
    {'m', other, "Tisch mNAD, Tische pNA, Tischen pD"},
    {'f', other, "Kiste fNAD, Kisten pNAD"},
    {'n', other, "Haus nNAD, Häuser pNA, Häusern pD"},
    {'m', other, "Garten mNAD, Gärten pNAD"},
    {'f', other, "Stadt fNAD, Städte pNA, Städten pD"},
    {'n', other, "Dorf nNAD, Dörfer pNA, Dörfern pD"},
    {'n', other, "Fernrohr nNAD, Fernrohre pNA, Fernrohren pD"},
    {'m', other, "Schlüssel mNADpNA, Schlüsseln pD"},
    {'f', other, "Tasche fNAD, Taschen pNAD"},
    {'m', other, "Hut mNAD, Hüte pNA, Hüten pD"},
    {'f', other, "Pflanze fNAD, Pflanzen pNAD"},
    {'f', other, "Fabrik fNAD, Fabriken pNAD"},
};
constexpr std::string_view lemmas =
    "Mann Frau Kind Lehrer Prinz Student Königin Hund Katze Pferd Buch Brief Tasse "
    "Apfel Ei Tisch Kiste Haus Garten Stadt Dorf Fernrohr Schlüssel Tasche Hut "
    "Pflanze Fabrik";

enum class Frame { intransitive, transitive, with_dative, directed, clausal };

struct VerbForms {
  const char* finite;  ///< first and third person singular, plural, as second word of a main clause
  const char*
      last;  ///< the same at the end of a subordinate clause, of which the plural is the infinitive too
  const char* participle;
  const char* particle;
  Frame frame;
  bool sein;
  unsigned subject;         ///< kinds of subjects, where only some can be
  const char* instrument;   ///< lemma
  bool somewhere;           ///< can have a place in the dative
  const char* either = "";  ///< lemma of the object beside which a place is right in either case; *: all
};
const VerbForms verb_table[] = {
    {"sehe sieht sehen", "sehe sieht sehen", "gesehen", "", Frame::transitive, false, 7, "Fernrohr", false},
    {"kenne kennt kennen", "kenne kennt kennen", "gekannt", "", Frame::transitive, false, 7, "", false},
    {"weiß weiß wissen", "weiß weiß wissen", "gewusst", "", Frame::clausal, false, 7, "", false},
    {"sage sagt sagen", "sage sagt sagen", "gesagt", "", Frame::clausal, false, 7, "", false},
    {"kaufe kauft kaufen", "kaufe kauft kaufen", "gekauft", "", Frame::transitive, false, 7, "", false},
    {"liebe liebt lieben", "liebe liebt lieben", "geliebt", "", Frame::transitive, false, 7, "", false},
    {"esse isst essen", "esse isst essen", "gegessen", "", Frame::transitive, false, person, "", false},
    {"fresse frisst fressen", "fresse frisst fressen", "gefressen", "", Frame::transitive, false, animal, "",
     false},
    {"helfe hilft helfen", "helfe hilft helfen", "geholfen", "", Frame::with_dative, false, 7, "", false,
     "*"},
    {"danke dankt danken", "danke dankt danken", "gedankt", "", Frame::with_dative, false, 7, "", false},
    {"lege legt legen", "lege legt legen", "gelegt", "", Frame::directed, false, 7, "", false, "Ei"},
    {"werfe wirft werfen", "werfe wirft werfen", "geworfen", "", Frame::directed, false, 7, "", false, "*"},
    {"schlafe schläft schlafen", "schlafe schläft schlafen", "geschlafen", "", Frame::intransitive, false, 7,
     "", true},
    {"lache lacht lachen", "lache lacht lachen", "gelacht", "", Frame::intransitive, false, 7, "", true, "*"},
    {"laufe läuft laufen", "laufe läuft laufen", "gelaufen", "", Frame::intransitive, true, 7, "", false,
     "*"},
    {"rufe ruft rufen", "anrufe anruft anrufen", "angerufen", "an", Frame::transitive, false, 7, "", false,
     "*"},
    {"lade lädt laden", "einlade einlädt einladen", "eingeladen", "ein", Frame::transitive, false, 7, "",
     false, "*"},
    {"mache macht machen", "aufmache aufmacht aufmachen", "aufgemacht", "auf", Frame::transitive, false, 7,
     "Schlüssel", false},
    {"mache macht machen", "zumache zumacht zumachen", "zugemacht", "zu", Frame::transitive, false, 7, "",
     false},
    {"wache wacht wachen", "aufwache aufwacht aufwachen", "aufgewacht", "auf", Frame::intransitive, true, 7,
     "", false},
    {"komme kommt kommen", "ankomme ankommt ankommen", "angekommen", "an", Frame::intransitive, true, 7, "",
     false},
};

/// What a finite form agrees with.
enum Agreement : unsigned { first_singular = 1, third_singular = 2, plurals = 4, second_plural = 8 };

enum class Helper { none, haben, sein, modal };

struct Word {
  Cells article = 0, relative = 0, noun = 0, pronoun = 0;
  char article_kind = 0;  ///< d: der, e: ein, k: kein
  int ending = -1;        ///< of an adjective: 0 none, e, en, er, es
  int lemma = -1;         ///< of a noun
  unsigned pronoun_agreement = 0;
  bool name = false, adverb = false, two_way = false, with = false;
  std::array<unsigned, std::size(verb_table)> finite{}, last{};  ///< Agreement by verb
  std::uint32_t infinitive = 0, participle = 0, particle = 0;    ///< sets of verbs
  Helper helper = Helper::none;
  unsigned helper_agreement = 0;
  std::string_view text;
};

std::vector<std::string> split(const std::string& text, char separator = ' ') {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);)
    if (!part.empty()) parts.push_back(part[0] == ' ' ? part.substr(1) : part);
  return parts;
}

using Table = std::unordered_map<std::string, Word>;

void add_nouns(Table& table) {
  int lemma = 0;
  for (const NounForms& noun : noun_table) {
    for (const std::string& form : split(noun.forms, ',')) {
      Word& word = table[split(form)[0]];
      word.noun = cells(split(form)[1]);
      word.lemma = lemma;
    }
    ++lemma;
  }
  for (const char* name : {"Anna", "Peter", "Maria", "Paul", "Lena", "Tom", "Emma", "Max", "Lisa", "Jan"})
    table[name].name = true;
}

void add_small_words(Table& table) {
  const auto article = [&](char kind, const char* form, const char* text) {
    table[form].article = cells(text);
    table[form].article_kind = kind;
  };
  article('d', "der", "mN fD");
  article('d', "die", "fNA pNA");
  article('d', "das", "nNA");
  article('d', "den", "mA pD");
  article('d', "dem", "mD nD");
  article('e', "ein", "mN nNA");
  article('e', "eine", "fNA");
  article('e', "einen", "mA");
  article('e', "einem", "mD nD");
  article('e', "einer", "fD");
  article('k', "kein", "mN nNA");
  article('k', "keine", "fNA pNA");
  article('k', "keinen", "mA pD");
  article('k', "keinem", "mD nD");
  article('k', "keiner", "fD");
  for (const auto& [form, text] : {std::pair{"der", "mN fD"},
                                   {"die", "fNA pNA"},
                                   {"das", "nNA"},
                                   {"den", "mA"},
                                   {"dem", "mD nD"},
                                   {"denen", "pD"}})
    table[form].relative = cells(text);
  const auto pronoun = [&](const char* form, const char* text, unsigned agreement) {
    table[form].pronoun = cells(text);
    table[form].pronoun_agreement = agreement;
  };
  pronoun("ich", "mN", first_singular);
  pronoun("wir", "pN", plurals);
  pronoun("er", "mN", third_singular);
  pronoun("sie", "fNA pNA", third_singular | plurals);
  pronoun("es", "nNA", third_singular);
  pronoun("ihn", "mA", 0);
  pronoun("ihm", "mD nD", 0);
  pronoun("ihr", "fD pN", second_plural);
  pronoun("ihnen", "pD", 0);
  for (const char* form : {"in", "auf", "unter", "hinter", "neben"}) table[form].two_way = true;
  table["mit"].with = true;
  for (const char* form : {"gestern", "heute", "jetzt"}) table[form].adverb = true;
  for (const std::string stem : {"alt", "klein", "gut", "neu", "schön"}) {
    int ending = 0;
    for (const char* end : {"", "e", "en", "er", "es"}) table[stem + end].ending = ending++;
  }
  for (const char* form : {",", ".", "und", "sondern", "nicht", "dass", "weil", "obwohl"}) table[form];
}

void add_verbs(Table& table) {
  constexpr unsigned agreements[] = {first_singular, third_singular, plurals};
  for (std::size_t v = 0; v < std::size(verb_table); ++v) {
    const VerbForms& verb = verb_table[v];
    const std::vector<std::string> finite = split(verb.finite), last = split(verb.last);
    for (std::size_t i = 0; i < 3; ++i) {
      table[finite[i]].finite[v] |= agreements[i];
      table[last[i]].last[v] |= agreements[i];
    }
    // "dankt" goes with er and with ihr.
    if (finite[1] + "en" == finite[2].substr(0, finite[2].size() - 2) + "ten")
      table[finite[1]].finite[v] |= second_plural, table[last[1]].last[v] |= second_plural;
    table[last[2]].infinitive |= 1U << v;
    table[verb.participle].participle |= 1U << v;
    if (*verb.particle != 0) table[verb.particle].particle |= 1U << v;
  }
  const auto helper = [&](Helper kind, const char* forms) {
    const std::vector<std::string> all = split(forms);
    for (std::size_t i = 0; i < 3; ++i) {
      table[all[i]].helper = kind;
      table[all[i]].helper_agreement |= agreements[i];
    }
  };
  helper(Helper::haben, "habe hat haben");
  helper(Helper::sein, "bin ist sind");
  helper(Helper::modal, "kann kann können");
  helper(Helper::modal, "muss muss müssen");
}

const Table& table() {
  static const Table words = [] {
    Table made;
    add_nouns(made);
    add_small_words(made);
    add_verbs(made);
    for (auto& [form, word] : made) word.text = form;
    return made;
  }();
  return words;
}

int lemma_of(const char* name) {
  static const std::vector<std::string> all = split(std::string(lemmas));
  const auto found = std::find(all.begin(), all.end(), name);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

/// Lemmas that the rules name.
struct Special {
  int dog = lemma_of("Hund"), telescope = lemma_of("Fernrohr"), key = lemma_of("Schlüssel"),
      bag = lemma_of("Tasche"), hat = lemma_of("Hut"), plant = lemma_of("Pflanze"),
      factory = lemma_of("Fabrik"), house = lemma_of("Haus"), garden = lemma_of("Garten"),
      city = lemma_of("Stadt"), village = lemma_of("Dorf");
  bool is_place(int lemma) const {
    return lemma == house || lemma == garden || lemma == city || lemma == village;
  }
  bool carried(int lemma) const {
    return lemma == dog || lemma == telescope || lemma == key || lemma == bag || lemma == hat;
  }
};
const Special& special() {
  static const Special s;
  return s;
}

bool is_feminine(std::string_view name) { return name.ends_with('a'); }

/// Adjectives after der, ein or kein, or nothing, by ending.
Cells adjective_cells(char article, int ending) {
  static const std::array<Cells, 5> weak{0, cells("mN fNA nNA"), cells("mAD fD nD pNAD"), 0, 0};
  static const std::array<Cells, 5> mixed{0, cells("fNA"), cells("mAD fD nD pNAD"), cells("mN"),
                                          cells("nNA")};
  static const std::array<Cells, 5> strong{0, cells("pNA"), cells("pD"), 0, 0};
  return (article == 'd' ? weak : article == 0 ? strong : mixed)[static_cast<std::size_t>(ending)];
}

/// One reading of a noun phrase.
struct Phrase {
  int end = 0;
  Cells cells = 0;
  unsigned agreement = 0;  ///< of a verb that it may be the subject of, if it is nominative
  unsigned kind = other;
  int lemma = -1, with = -1;  ///< of the noun, and of the noun that it is "mit"
  bool indefinite = false, negative = false;
  bool definite = false;  ///< with der; not a pronoun
  bool located = false;   ///< with where it is after it
  bool known = false;     ///< a pronoun that can stand for what one may "wissen"
};

/// What is between subject and verb: pronoun, adverb, instrument, object, nicht, place, in this order.
struct Middle {
  int end = 0;
  bool has_object = false, negated = false, has_place = false, pronoun = false;
  bool fixed = false;        ///< subject and object can not change places
  bool after_place = false;  ///< a main clause that begins with where
  Phrase object;
  int instrument = -1;
  Cells place = 0;
};

class Parser {
 public:
  Parser(std::vector<const Word*> words, bool free) : words_(std::move(words)), free_(free) {}

  bool sentence() {
    const int last = static_cast<int>(words_.size()) - 1;
    if (last < 0 || !is(last, ".")) return false;
    Ends ends = main_clause(0);
    for (int i = 0; i < last; ++i) {
      if (!ends.has(i)) continue;
      if (is(i, "und")) ends.add(main_clause(i + 1));
      if (free_ && is(i, ",")) ends.add(of_demonstrative(i + 1));
      if (free_ && is(i, ",")) ends.add(of_any_noun(i + 1));
    }
    return ends.has(last);
  }

 private:
  struct Ends {
    std::uint64_t bits = 0;
    void add(int i) { bits |= std::uint64_t{1} << i; }
    void add(Ends other) { bits |= other.bits; }
    bool has(int i) const { return (bits >> i & 1) != 0; }
  };
  using Phrases = std::vector<Phrase>;

  const Word& at(int i) const {
    static const Word nothing;
    return i >= 0 && i < static_cast<int>(words_.size()) ? *words_[static_cast<std::size_t>(i)] : nothing;
  }
  bool is(int i, std::string_view text) const { return at(i).text == text; }

  // Noun phrases.

  Phrases noun_phrases(int i, bool inner) {
    Phrases found;
    const Word& word = at(i);
    if (word.name) found.push_back({i + 1, cells("mNAD"), third_singular, person});
    if (word.pronoun != 0) found.push_back({i + 1, word.pronoun, word.pronoun_agreement, person});
    if (is(i, "nicht")) {
      if (free_) found = noun_phrases(i + 1, inner);
      for (const Phrase& first : common_phrases(i + 1, inner)) {
        if (!is(first.end, ",") || !is(first.end + 1, "sondern")) continue;
        for (Phrase second : common_phrases(first.end + 2, inner)) {
          second.cells &= static_cast<Cells>((first.cells & accusative ? accusative : 0) |
                                             (first.cells & dative ? dative : 0) |
                                             (free_ && (first.cells & nominative) ? nominative : 0));
          if (free_) second.agreement |= first.agreement;  // the verb may be that of either
          second.negative = true;
          if (second.cells != 0) found.push_back(second);
        }
      }
    }
    for (const Phrase& phrase : common_phrases(i, inner)) found.push_back(phrase);
    return found;
  }

  /// Article, adjectives and noun; cells are 0 where there is none.
  Phrase noun_group(int i) const {
    Phrase phrase;
    char article = 0;
    phrase.cells = plural;  // without an article only a plural can be
    if (at(i).article != 0) {
      article = at(i).article_kind;
      phrase.cells = at(i++).article;
    }
    for (; at(i).ending > 0; ++i) phrase.cells &= adjective_cells(article, at(i).ending);
    phrase.cells &= at(i).noun;
    if (phrase.cells == 0) return phrase;
    phrase.lemma = at(i).lemma;
    phrase.kind = noun_table[phrase.lemma].kind;
    phrase.indefinite = article == 0 || article == 'e';
    phrase.negative = article == 'k';
    phrase.definite = article == 'd';
    phrase.end = i + 1;
    finish(phrase);
    return phrase;
  }

  Phrases common_phrases(int i, bool inner) {
    Phrases found;
    const Phrase phrase = noun_group(i);
    if (phrase.cells == 0) return found;
    if (phrase.lemma != special().plant && phrase.lemma != special().factory) found.push_back(phrase);
    if (free_ && is(phrase.end, "der") && (at(phrase.end + 1).noun & plural) != 0) {
      found.push_back(phrase);  // of many
      found.back().end += 2;
    }
    add_attributes(phrase, inner, found);
    add_relatives(phrase, found);
    return found;
  }

  static void finish(Phrase& phrase) {
    const Cells subject = phrase.cells & nominative;
    phrase.agreement = (subject & plural ? plurals : 0U) | (subject & ~plural ? third_singular : 0U);
  }

  void add_attributes(const Phrase& host, bool inner, Phrases& found) {
    const Word& preposition = at(host.end);
    if (preposition.with && (inner || host.kind != person)) return;
    if (!preposition.with && !preposition.two_way) return;
    for (const Phrase& noun : noun_phrases(host.end + 1, true)) {
      if ((noun.cells & dative) == 0 || at(host.end + 1).pronoun != 0) continue;
      if (preposition.with && !special().carried(noun.lemma)) continue;
      const bool in = preposition.text == "in";
      if (host.lemma == special().plant &&
          !(in && (noun.lemma == special().house || noun.lemma == special().garden)))
        continue;
      if (host.lemma == special().factory &&
          !(in && (noun.lemma == special().city || noun.lemma == special().village)))
        continue;
      Phrase whole = host;
      whole.end = noun.end;
      if (preposition.with) whole.with = noun.lemma;
      whole.located = preposition.two_way || noun.located;
      found.push_back(whole);
      if (free_) add_relatives(whole, found);
    }
  }

  void add_relatives(const Phrase& host, Phrases& found) {
    const int i = open(host.end);
    if (i < 0 || at(i).relative == 0 || i == host.end) return;
    for (int g = 0; g < 4; ++g) {
      const Cells pronoun = at(i).relative & column(g), antecedent = host.cells & column(g);
      if (pronoun == 0 || antecedent == 0) continue;
      Phrase relative;
      relative.cells = pronoun;
      relative.kind = host.kind;
      relative.lemma = host.lemma;
      relative.definite = true;
      finish(relative);
      const Ends ends = relative_clause(i + 1, relative);
      for (int end = 0; end <= static_cast<int>(words_.size()); ++end) {
        if (!ends.has(end)) continue;
        Phrase whole = host;
        whole.cells = antecedent;
        whole.end = end;
        finish(whole);
        found.push_back(whole);
      }
    }
  }

  // Clauses.

  /// The comma before a clause, which may have closed another one: where the clause begins, or -1.
  int open(int i) const {
    if (is(i, ",")) return i + 1;
    return i == 0 || is(i - 1, ",") || is(i - 1, "und") ? i : -1;
  }
  /// The comma after a clause that ends before i.
  Ends close(Ends ends) const {
    Ends closed;
    for (int i = 0; i < static_cast<int>(words_.size()); ++i) {
      if (!ends.has(i)) continue;
      if (is(i, ",")) closed.add(i + 1);
      if (is(i, ".") || is(i - 1, ",")) closed.add(i);
    }
    return closed;
  }

  Ends subordinate_clause(int i, bool complement) {
    i = open(i);
    if (i < 0 || !(complement ? is(i, "dass") : is(i, "weil") || is(i, "obwohl"))) return {};
    Ends ends;
    for (const Phrase& subject : noun_phrases(i + 1, false))
      for (Middle middle : middles(subject.end, true)) {
        middle.fixed = middle.pronoun;  // as a subject, a pronoun would be first
        ends.add(final_verbs(subject, middle));
      }
    return close(ends);
  }

  Ends relative_clause(int i, const Phrase& pronoun) {
    Ends ends;
    for (Middle middle : middles(i, true)) {
      middle.fixed = true;  // a relative pronoun is first
      ends.add(final_verbs(pronoun, middle));
    }
    for (const Phrase& subject : noun_phrases(i, false))
      for (Middle middle : middles(subject.end, false)) {
        middle.has_object = middle.fixed = true;
        middle.object = pronoun;
        ends.add(final_verbs(subject, middle));
      }
    return close(ends);
  }

  /// A main clause after a comma that begins with der, die, das, ..., and speaks of what was said before.
  Ends of_demonstrative(int i) {
    if (at(i).relative == 0) return {};
    Phrase demonstrative;
    demonstrative.cells = at(i).relative;
    demonstrative.kind = person | animal | other;
    finish(demonstrative);
    return second_verb(i + 1, &demonstrative);
  }

  /// A relative clause that has moved away from its noun to the end.
  Ends of_any_noun(int i) {
    Ends ends;
    if (at(i).relative == 0) return ends;
    for (int begin = 0; begin < i - 1; ++begin) {
      Phrase host = noun_group(begin);
      if (at(begin).name)
        host = {begin + 1, is_feminine(at(begin).text) ? cells("fN") : cells("mN"), 0, person};
      if (begin > 0 && (at(begin - 1).article != 0 || at(begin - 1).ending > 0)) continue;
      for (int g = 0; g < 4; ++g) {
        Phrase relative = host;
        relative.cells = at(i).relative & column(g);
        if (relative.cells == 0 || (host.cells & column(g)) == 0) continue;
        relative.definite = true;
        finish(relative);
        ends.add(relative_clause(i + 1, relative));
      }
    }
    return ends;
  }

  Ends main_clause(int i) {
    Ends ends;
    for (const Phrase& subject : noun_phrases(i, false)) ends.add(second_verb(subject.end, &subject));
    Ends fronts, places;
    if (is(i, "in"))
      for (const Phrase& place : noun_phrases(i + 1, true))
        if (place.cells & dative) places.add(place.end);
    fronts.add(places);
    if (at(i).adverb) fronts.add(i + 1);
    fronts.add(subordinate_clause(i, false));
    for (int front = 0; front < static_cast<int>(words_.size()); ++front)
      if (fronts.has(front)) ends.add(second_verb(front, nullptr, places.has(front)));
    return ends;
  }

  /// The finite verb at i, a subject after it unless there is one before, and the rest.
  Ends second_verb(int i, const Phrase* before, bool after_place = false) {
    const Word& finite = at(i);
    const bool some = finite.helper != Helper::none || std::any_of(finite.finite.begin(), finite.finite.end(),
                                                                   [](unsigned a) { return a != 0; });
    if (!some) return {};
    if (before != nullptr) return rest(finite, *before, i + 1);
    Ends ends;
    for (const Phrase& subject : noun_phrases(i + 1, false))
      ends.add(rest(finite, subject, subject.end, after_place));
    return ends;
  }

  Ends rest(const Word& finite, const Phrase& subject, int i, bool after_place = false) {
    Ends ends;
    for (Middle middle : middles(i, true)) {
      middle.after_place = after_place;
      for (std::size_t v = 0; v < std::size(verb_table); ++v) {
        const std::uint32_t bit = 1U << v;
        const Word& last = at(middle.end);
        if (finite.finite[v] != 0) {
          const bool separable = *verb_table[v].particle != 0;
          if (!separable || (last.particle & bit))
            add_after(ends, v, finite.finite[v], subject, middle, middle.end + (separable ? 1 : 0), true);
        }
        if (with_helper(finite, last, v))
          add_after(ends, v, finite.helper_agreement, subject, middle, middle.end + 1, true);
      }
    }
    if (finite.helper == Helper::sein) {
      for (const Middle& middle : middles(i, true))
        if (at(middle.end).ending == 0 && copula(finite.helper_agreement, subject, middle)) {
          ends.add(middle.end + 1);
          ends.add(subordinate_clause(middle.end + 1, false));
        }
    }
    return ends;
  }

  static bool with_helper(const Word& helper, const Word& verb, std::size_t v) {
    const std::uint32_t bit = 1U << v;
    if (helper.helper == Helper::modal) return (verb.infinitive & bit) != 0;
    if (helper.helper == Helper::none || (verb.participle & bit) == 0) return false;
    return verb_table[v].sein == (helper.helper == Helper::sein);
  }

  Ends final_verbs(const Phrase& subject, const Middle& middle) {
    Ends ends;
    const Word& last = at(middle.end);
    const Word& helper = at(middle.end + 1);
    for (std::size_t v = 0; v < std::size(verb_table); ++v) {
      if (last.last[v] != 0) add_after(ends, v, last.last[v], subject, middle, middle.end + 1, false);
      if (with_helper(helper, last, v))
        add_after(ends, v, helper.helper_agreement, subject, middle, middle.end + 2, false);
    }
    if (last.ending == 0 && helper.helper == Helper::sein) {
      const bool well = free_ && last.text == "gut" && (subject.cells & dative) != 0 &&
                        (helper.helper_agreement & third_singular) != 0 && !middle.has_object;
      if (well || copula(helper.helper_agreement, subject, middle)) ends.add(middle.end + 2);
    }
    return ends;
  }

  /// What follows the last verb: the clause that the verb needs, or that a main clause may have.
  void add_after(Ends& ends, std::size_t v, unsigned agreement, const Phrase& subject, const Middle& middle,
                 int end, bool main) {
    bool right = fits(v, agreement, subject, middle);
    if (!right && free_ && middle.has_object && !middle.fixed) {
      Middle changed = middle;
      changed.object = subject;
      right = fits(v, agreement, middle.object, changed);
    }
    if (!right) return;
    if (verb_table[v].frame == Frame::clausal) {
      if (free_ && middle.has_object) ends.add(end);
      return ends.add(subordinate_clause(end, true));
    }
    ends.add(end);
    if (free_ && !middle.has_place) add_late(ends, v, end);
    if (main) ends.add(subordinate_clause(end, false));
  }

  /// After the last verb: an adverb and a phrase that the verb does not need.
  void add_late(Ends& ends, std::size_t v, int end) {
    if (at(end).adverb) ends.add(++end);
    if (!at(end).two_way && !at(end).with) return;
    for (const Phrase& noun : noun_phrases(end + 1, true)) {
      const bool right =
          at(end).with ? noun.lemma == lemma_of(verb_table[v].instrument) : verb_table[v].somewhere;
      if (right && (noun.cells & dative) != 0) ends.add(noun.end);
    }
  }

  static bool copula(unsigned agreement, const Phrase& subject, const Middle& middle) {
    return (subject.agreement & agreement) != 0 && (subject.cells & nominative) != 0 && !middle.has_object &&
           !middle.has_place && middle.instrument < 0;
  }

  /// Agreement and government.
  bool fits(std::size_t v, unsigned agreement, const Phrase& subject, const Middle& middle) const {
    const VerbForms& verb = verb_table[v];
    if ((subject.agreement & agreement) == 0 || (subject.cells & nominative) == 0 ||
        (subject.kind & (free_ && verb.subject == animal ? person | animal : verb.subject)) == 0)
      return false;  // of people, fressen is rude but German
    const int instrument = lemma_of(verb.instrument);
    if (middle.instrument >= 0 && middle.instrument != instrument) return false;
    if (!free_ && middle.has_object && instrument >= 0 && middle.object.with == instrument) return false;
    if (middle.negated && middle.has_object && (middle.object.indefinite || middle.object.negative))
      return false;
    const std::string_view either = verb.either;
    const bool any_place = free_ && (middle.place & (accusative | dative)) != 0 &&
                           (either == "*" || (!either.empty() && middle.has_object &&
                                              middle.object.lemma == lemma_of(verb.either)));
    const bool calls = std::string_view(verb.participle) == "angerufen";  // with the dative in the south
    const Cells governed = middle.has_object ? middle.object.cells : Cells{0};
    switch (verb.frame) {
      case Frame::intransitive:
        return !middle.has_object &&
               (!middle.has_place || any_place || (verb.somewhere && (middle.place & dative)));
      case Frame::transitive:
        return (governed & (accusative | (free_ && calls && middle.fixed ? dative : 0))) &&
               (!middle.has_place || any_place);
      case Frame::with_dative:
        return (governed & dative) && (!middle.has_place || any_place);
      case Frame::directed:
        return (governed & accusative) && middle.has_place && (any_place || (middle.place & accusative));
      case Frame::clausal:
        if (free_ && middle.has_object) return (subject.kind & person) != 0 && is_known(verb, middle);
        break;
    }
    return !middle.has_object && !middle.has_place;
  }

  /// What one may "wissen" besides clauses: somebody or something to go to, who is where, es and sie.
  static bool is_known(const VerbForms& verb, const Middle& middle) {
    const Phrase& object = middle.object;
    const bool some = object.lemma >= 0 && (!object.definite || special().is_place(object.lemma));
    return std::string_view(verb.participle) == "gewusst" && (object.cells & accusative) &&
           (object.known || object.located || some || middle.after_place || middle.has_place);
  }

  std::vector<Middle> middles(int i, bool object) {
    std::vector<Middle> found;
    Middle middle;
    middle.end = i;
    add_middle(middle, object, found);
    if (object && at(i).pronoun != 0) {
      middle.has_object = middle.pronoun = true;
      middle.object = {i + 1, at(i).pronoun, at(i).pronoun_agreement, person};
      middle.object.known = is(i, "es") || is(i, "sie");
      middle.end = i + 1;
      add_middle(middle, false, found);
    }
    return found;
  }

  void add_middle(Middle middle, bool object, std::vector<Middle>& found) {
    if (at(middle.end).adverb) ++middle.end;
    if (at(middle.end).with) {
      for (const Phrase& noun : noun_phrases(middle.end + 1, true)) {
        if ((noun.cells & dative) == 0) continue;
        Middle with = middle;
        with.instrument = noun.lemma;
        with.end = noun.end;
        add_object(with, object, found);
      }
      return;
    }
    add_object(middle, object, found);
  }

  void add_object(const Middle& middle, bool object, std::vector<Middle>& found) {
    add_end(middle, found);
    if (!object || at(middle.end).pronoun != 0) return;
    for (const Phrase& phrase : noun_phrases(middle.end, false)) {
      Middle with = middle;
      with.has_object = true;
      with.object = phrase;
      with.end = phrase.end;
      add_end(with, found);
      if (!free_ || with.instrument >= 0 || !at(phrase.end).with) continue;
      for (const Phrase& noun : noun_phrases(phrase.end + 1, true)) {
        if ((noun.cells & dative) == 0) continue;
        with.instrument = noun.lemma;
        with.end = noun.end;
        add_end(with, found);
      }
    }
  }

  void add_end(Middle middle, std::vector<Middle>& found) {
    if (is(middle.end, "nicht")) {
      middle.negated = true;
      ++middle.end;
    }
    found.push_back(middle);
    if (!at(middle.end).two_way) return;
    for (const Phrase& place : noun_phrases(middle.end + 1, true)) {
      Middle with = middle;
      with.has_place = true;
      with.place = place.cells;
      with.end = place.end;
      found.push_back(with);
    }
  }

  std::vector<const Word*> words_;
  const bool free_;
};

}  // namespace

bool grammatical(const std::vector<std::string>& tokens, bool free) {
  std::vector<const Word*> words;
  for (const std::string& token : tokens) {
    const auto found = table().find(token);
    if (found == table().end()) return false;
    words.push_back(&found->second);
  }
  return Parser(std::move(words), free).sentence();
}

char gender(const std::string& noun) {
  const auto found = table().find(noun);
  return found == table().end() || found->second.lemma < 0 ? char{0} : noun_table[found->second.lemma].gender;
}

bool is_name(const std::string& word) {
  const auto found = table().find(word);
  return found != table().end() && found->second.name;
}

}  // namespace polyhead::data::check
