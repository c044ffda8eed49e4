#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The words of the toy language, as tables, and their forms.
namespace polyhead::data::grammar {

enum class Gender : std::uint8_t { masculine, feminine, neuter };
enum class Case : std::uint8_t { nominative, accusative, dative };
enum class Number : std::uint8_t { singular, plural };
enum class Person : std::uint8_t { first, third };

/// What a noun names, for what may be said about it; a noun may be several.
enum Class : unsigned {
  person = 1,
  animal = 2,
  thing = 4,
  food = 8,
  place = 16,     // one can be in it, and it does not move
  box = 32,       // a thing that things can be in
  surface = 64,   // a thing that things can be on
  opening = 128,  // it can be opened
  carried = 256,  // a person can be "with" it
  green = 512,    // a place of plants
  built = 1024,   // a place of factories
  concrete = person | animal | thing | food | place | box | surface
};

/// Where a noun phrase stands.
enum class Place : std::uint8_t { subject, object, prepositional, nowhere };
/// What a clause is.
enum class ClauseKind : std::uint8_t { main, complement, adverbial, relative, none };

struct Noun {
  std::string_view english, english_plural, german, german_plural;
  Gender gender;
  unsigned classes;
  bool weak = false;                ///< accusative and dative singular as the plural
  Place held_out = Place::nowhere;  ///< training never has it there
  unsigned context = 0;  ///< it is always "in" one of these: what the sense of an ambiguous word follows from
};

enum class Frame : std::uint8_t { intransitive, transitive, dative, directed, clausal, copula };

constexpr std::string_view any_noun = "*";

/// A separable verb's particle is apart from its finite form, and joined to it at the end of a subordinate clause.
struct Verb {
  std::string_view english, english_third, english_past, english_particle;
  std::string_view german, german_first, german_third, participle, particle;
  Frame frame;
  unsigned subjects, objects = 0;
  bool with_sein = false;                  ///< the auxiliary of its perfect
  ClauseKind held_out = ClauseKind::none;  ///< training never has it in such a clause
  std::string_view instrument = {};        ///< the English noun that can be "with" it
  std::string_view wrong_particle = {};    ///< one that makes no verb of it
  /// The English object beside which it takes where something is and where it goes, so that either case is right of a
  /// place; or any_noun.
  std::string_view either_case = {};
};

struct Preposition {
  std::string_view english, german;
  unsigned hosts, nouns;  ///< of which noun it can be an attribute, with which noun
  bool two_way;           ///< accusative where something goes, dative where it is; else always dative
};

struct Name {
  std::string_view word;
  Gender gender;
};

struct Adverb {
  std::string_view english, german;
  bool past, present;
};

std::span<const Noun> nouns();
std::span<const Verb> verbs();
std::span<const Preposition> prepositions();
/// The row of a preposition.
int preposition_row(std::string_view english);
std::span<const Name> names();
std::span<const Adverb> adverbs();
std::span<const std::pair<std::string_view, std::string_view>> adjectives();
std::span<const std::pair<std::string_view, std::string_view>> subordinators();  // because, although

/// The other sense of a word: a row of the same English word, or -1.
int other_sense(int verb);

enum class Determiner : std::uint8_t { definite, indefinite, negative, none };
enum class VerbForm : std::uint8_t { infinitive, finite, participle };
enum class Auxiliary : std::uint8_t { none, have, be, can, must };

std::string_view german_article(Determiner determiner, Gender gender, Number number, Case c);
/// The ending follows from the determiner: weak, mixed or strong.
std::string_view german_adjective(int adjective, Determiner determiner, Gender gender, Number number, Case c);
std::string_view german_adjective(int adjective);  ///< predicative
std::string_view german_noun(int noun, Number number, Case c);
std::string_view german_pronoun(Person person, Gender gender, Number number, Case c);
std::string_view german_relative(Gender gender, Number number, Case c);
/// A finite form is joined with the verb's particle where `joined`; an infinitive always is.
std::string_view german_verb(int verb, VerbForm form, Person person, Number number, bool joined);
std::string_view german_auxiliary(Auxiliary auxiliary, Person person, Number number);

}  // namespace polyhead::data::grammar
