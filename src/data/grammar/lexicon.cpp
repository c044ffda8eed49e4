#include "data/grammar/lexicon.h"

#include "polyhead/core/error.h"

namespace polyhead::data::grammar {
namespace {

using enum Gender;
using enum Frame;
using enum ClauseKind;
using Words = std::pair<std::string_view, std::string_view>;

/// None is declined as an adjective, which has every gender ("der Junge", "die Junge").
constexpr Noun noun_table[] = {
    {"man", "men", "Mann", "Männer", masculine, person},
    {"woman", "women", "Frau", "Frauen", feminine, person},
    {"child", "children", "Kind", "Kinder", neuter, person, false, Place::subject},
    {"teacher", "teachers", "Lehrer", "Lehrer", masculine, person, false, Place::object},
    {"prince", "princes", "Prinz", "Prinzen", masculine, person, true},
    {"student", "students", "Student", "Studenten", masculine, person, true},
    {"queen", "queens", "Königin", "Königinnen", feminine, person, false, Place::subject},
    {"dog", "dogs", "Hund", "Hunde", masculine, animal | carried},
    {"cat", "cats", "Katze", "Katzen", feminine, animal, false, Place::object},
    {"horse", "horses", "Pferd", "Pferde", neuter, animal, false, Place::prepositional},
    {"book", "books", "Buch", "Bücher", neuter, thing | opening},
    {"letter", "letters", "Brief", "Briefe", masculine, thing | opening},
    {"cup", "cups", "Tasse", "Tassen", feminine, thing},
    {"apple", "apples", "Apfel", "Äpfel", masculine, thing | food},
    {"egg", "eggs", "Ei", "Eier", neuter, thing | food},
    {"table", "tables", "Tisch", "Tische", masculine, surface},
    {"box", "boxes", "Kiste", "Kisten", feminine, thing | box | surface | opening},
    {"house", "houses", "Haus", "Häuser", neuter, place | green},
    {"garden", "gardens", "Garten", "Gärten", masculine, place | green},
    {"city", "cities", "Stadt", "Städte", feminine, place | built},
    {"village", "villages", "Dorf", "Dörfer", neuter, place | built},
    {"telescope", "telescopes", "Fernrohr", "Fernrohre", neuter, thing | carried},
    {"key", "keys", "Schlüssel", "Schlüssel", masculine, thing | carried},
    {"bag", "bags", "Tasche", "Taschen", feminine, thing | carried | box | opening},
    {"hat", "hats", "Hut", "Hüte", masculine, thing | carried},
    {"plant", "plants", "Pflanze", "Pflanzen", feminine, thing, false, Place::nowhere, green},
    {"plant", "plants", "Fabrik", "Fabriken", feminine, thing, false, Place::nowhere, built},
};

constexpr Verb verb_table[] = {
    {"see", "sees", "saw", "", "sehen", "sehe", "sieht", "gesehen", "", transitive, person | animal, concrete,
     false, none, "telescope"},
    {"know", "knows", "knew", "", "kennen", "kenne", "kennt", "gekannt", "", transitive, person,
     person | place},
    {"know", "knows", "knew", "", "wissen", "weiß", "weiß", "gewusst", "", clausal, person},
    {"say", "says", "said", "", "sagen", "sage", "sagt", "gesagt", "", clausal, person},
    {"buy", "buys", "bought", "", "kaufen", "kaufe", "kauft", "gekauft", "", transitive, person,
     thing | food | animal, false, relative},
    {"love", "loves", "loved", "", "lieben", "liebe", "liebt", "geliebt", "", transitive, person, concrete},
    {"eat", "eats", "ate", "", "essen", "esse", "isst", "gegessen", "", transitive, person, food},
    {"eat", "eats", "ate", "", "fressen", "fresse", "frisst", "gefressen", "", transitive, animal, food},
    {"help", "helps", "helped", "", "helfen", "helfe", "hilft", "geholfen", "", dative, person,
     person | animal, false, complement, "", "", any_noun},
    {"thank", "thanks", "thanked", "", "danken", "danke", "dankt", "gedankt", "", dative, person, person},
    {"lay", "lays", "laid", "", "legen", "lege", "legt", "gelegt", "", directed, person, thing | food, false,
     none, "", "", "egg"},
    {"throw", "throws", "threw", "", "werfen", "werfe", "wirft", "geworfen", "", directed, person,
     thing | food, false, none, "", "", any_noun},
    {"sleep", "sleeps", "slept", "", "schlafen", "schlafe", "schläft", "geschlafen", "", intransitive,
     person | animal},
    {"laugh", "laughs", "laughed", "", "lachen", "lache", "lacht", "gelacht", "", intransitive, person, 0,
     false, none, "", "", any_noun},
    {"run", "runs", "ran", "", "laufen", "laufe", "läuft", "gelaufen", "", intransitive, person | animal, 0,
     true, none, "", "", any_noun},
    {"call", "calls", "called", "", "rufen", "rufe", "ruft", "angerufen", "an", transitive, person, person,
     false, relative, "", "ein", any_noun},
    {"invite", "invites", "invited", "", "laden", "lade", "lädt", "eingeladen", "ein", transitive, person,
     person, false, none, "", "an", any_noun},
    {"open", "opens", "opened", "", "machen", "mache", "macht", "aufgemacht", "auf", transitive, person,
     opening, false, none, "key", "ein"},
    {"close", "closes", "closed", "", "machen", "mache", "macht", "zugemacht", "zu", transitive, person,
     opening, false, adverbial, "", "ein"},
    {"wake", "wakes", "woke", "up", "wachen", "wache", "wacht", "aufgewacht", "auf", intransitive,
     person | animal, 0, true, none, "", "ein"},
    {"arrive", "arrives", "arrived", "", "kommen", "komme", "kommt", "angekommen", "an", intransitive, person,
     0, true, none, "", "ein"},
    {"be", "is", "", "", "sein", "bin", "ist", "", "", copula, person | animal | thing},
};

constexpr Preposition preposition_table[] = {
    {"in", "in", concrete, place | box, true},
    {"on", "auf", thing | food | animal, surface, true},
    {"under", "unter", thing | food | animal, surface, true},
    {"behind", "hinter", concrete, person | place | surface, true},
    {"beside", "neben", concrete, person | animal | place | surface, true},
    {"with", "mit", person, carried, false},
};

constexpr Name name_table[] = {
    {"Anna", feminine}, {"Peter", masculine}, {"Maria", feminine}, {"Paul", masculine}, {"Lena", feminine},
    {"Tom", masculine}, {"Emma", feminine},   {"Max", masculine},  {"Lisa", feminine},  {"Jan", masculine}};

constexpr Adverb adverb_table[] = {
    {"yesterday", "gestern", true, false}, {"today", "heute", true, true}, {"now", "jetzt", false, true}};

constexpr Words adjective_table[] = {
    {"old", "alt"}, {"small", "klein"}, {"good", "gut"}, {"new", "neu"}, {"beautiful", "schön"}};

constexpr Words subordinator_table[] = {{"because", "weil"}, {"although", "obwohl"}};

using Declension =
    std::array<std::array<std::string_view, 4>, 3>;  // case × masculine, feminine, neuter, plural

constexpr Declension definite{
    {{"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "den"}}};
constexpr Declension indefinite{
    {{"ein", "eine", "ein", ""}, {"einen", "eine", "ein", ""}, {"einem", "einer", "einem", ""}}};
constexpr Declension negative{{{"kein", "keine", "kein", "keine"},
                               {"keinen", "keine", "kein", "keine"},
                               {"keinem", "keiner", "keinem", "keinen"}}};
constexpr Declension relative_pronoun{
    {{"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "denen"}}};
constexpr Declension personal{
    {{"er", "sie", "es", "sie"}, {"ihn", "sie", "es", "sie"}, {"ihm", "ihr", "ihm", "ihnen"}}};
constexpr Declension weak_ending{{{"e", "e", "e", "en"}, {"en", "e", "e", "en"}, {"en", "en", "en", "en"}}};
/// After ein and kein; its plural is that after kein.
constexpr Declension mixed_ending{
    {{"er", "e", "es", "en"}, {"en", "e", "es", "en"}, {"en", "en", "en", "en"}}};
/// Without an article, which here only plurals are.
constexpr std::array<std::string_view, 3> strong_plural{"e", "e", "en"};

std::string_view decline(const Declension& table, Gender gender, Number number, Case c) {
  return table[static_cast<std::size_t>(c)][number == Number::plural ? 3 : static_cast<std::size_t>(gender)];
}

constexpr std::array<std::string_view, 5> endings{"", "e", "en", "er", "es"};

/// The forms that rules make, so that every form is a string that lasts.
struct Forms {
  std::vector<std::array<std::string, 5>> adjectives;
  std::vector<std::string> dative_plurals;
  std::vector<std::array<std::string, 3>> joined;  // infinitive, first, third
};

const Forms& forms() {
  static const Forms made = [] {
    Forms f;
    for (const Words& words : adjective_table) {
      auto& row = f.adjectives.emplace_back();
      for (std::size_t i = 0; i < endings.size(); ++i) row[i] = std::string(words.second).append(endings[i]);
    }
    for (const Noun& noun : noun_table) {
      const std::string plural(noun.german_plural);
      f.dative_plurals.push_back(plural.ends_with("n") || plural.ends_with("s") ? plural : plural + "n");
    }
    for (const Verb& verb : verb_table) {
      const std::string particle(verb.particle);
      f.joined.push_back({std::string(particle).append(verb.german),
                          std::string(particle).append(verb.german_first),
                          std::string(particle).append(verb.german_third)});
    }
    return f;
  }();
  return made;
}

}  // namespace

std::span<const Noun> nouns() { return noun_table; }
std::span<const Verb> verbs() { return verb_table; }
std::span<const Preposition> prepositions() { return preposition_table; }
int preposition_row(std::string_view english) {
  int row = 0;
  for (const Preposition& preposition : preposition_table) {
    if (preposition.english == english) return row;
    ++row;
  }
  throw Error(concat("grammar: no preposition \"", english, '"'));
}
std::span<const Name> names() { return name_table; }
std::span<const Adverb> adverbs() { return adverb_table; }
std::span<const Words> adjectives() { return adjective_table; }
std::span<const Words> subordinators() { return subordinator_table; }

int other_sense(int verb) {
  const auto row = static_cast<std::size_t>(verb);
  for (std::size_t i = 0; i < std::size(verb_table); ++i)
    if (i != row && verb_table[i].english == verb_table[row].english) return static_cast<int>(i);
  return -1;
}

std::string_view german_article(Determiner determiner, Gender gender, Number number, Case c) {
  switch (determiner) {
    case Determiner::definite:
      return decline(definite, gender, number, c);
    case Determiner::indefinite:
      return decline(indefinite, gender, number, c);
    case Determiner::negative:
      return decline(negative, gender, number, c);
    case Determiner::none:
      break;
  }
  return "";
}

std::string_view german_adjective(int adjective, Determiner determiner, Gender gender, Number number,
                                  Case c) {
  const bool strong =
      number == Number::plural && (determiner == Determiner::indefinite || determiner == Determiner::none);
  const std::string_view ending =
      strong ? strong_plural[static_cast<std::size_t>(c)]
             : decline(determiner == Determiner::definite ? weak_ending : mixed_ending, gender, number, c);
  const auto& row = forms().adjectives[static_cast<std::size_t>(adjective)];
  for (std::size_t i = 0; i < endings.size(); ++i)
    if (endings[i] == ending) return row[i];
  return row[0];
}

std::string_view german_adjective(int adjective) {
  return forms().adjectives[static_cast<std::size_t>(adjective)][0];
}

std::string_view german_noun(int noun, Number number, Case c) {
  const auto row = static_cast<std::size_t>(noun);
  if (number == Number::plural)
    return c == Case::dative ? std::string_view(forms().dative_plurals[row]) : noun_table[row].german_plural;
  return noun_table[row].weak && c != Case::nominative ? noun_table[row].german_plural
                                                       : noun_table[row].german;
}

std::string_view german_pronoun(Person who, Gender gender, Number number, Case c) {
  if (who == Person::first) return number == Number::singular ? "ich" : "wir";
  return decline(personal, gender, number, c);
}

std::string_view german_relative(Gender gender, Number number, Case c) {
  return decline(relative_pronoun, gender, number, c);
}

std::string_view german_verb(int verb, VerbForm form, Person who, Number number, bool joined) {
  const auto row = static_cast<std::size_t>(verb);
  const Verb& v = verb_table[row];
  if (form == VerbForm::participle) return v.participle;
  const std::size_t cell = form == VerbForm::infinitive || number == Number::plural ? 0
                           : who == Person::first                                   ? 1
                                                                                    : 2;
  if (form == VerbForm::infinitive || joined) return forms().joined[row][cell];
  return std::array{v.german, v.german_first, v.german_third}[cell];
}

std::string_view german_auxiliary(Auxiliary auxiliary, Person who, Number number) {
  constexpr std::array<std::array<std::string_view, 3>, 5> table{{{"", "", ""},
                                                                  {"haben", "habe", "hat"},
                                                                  {"sind", "bin", "ist"},
                                                                  {"können", "kann", "kann"},
                                                                  {"müssen", "muss", "muss"}}};
  return table[static_cast<std::size_t>(auxiliary)][number == Number::plural ? 0
                                                    : who == Person::first   ? 1
                                                                             : 2];
}

}  // namespace polyhead::data::grammar
