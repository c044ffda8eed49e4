#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace polyhead::data {

/// Source token `source` and target token `target` translate each other. As in Och & Ney 2003 ("A systematic
/// comparison of various statistical alignment models"), sure links S are part of the possible links P: P is all
/// links of a pair, S those with `sure`.
struct Link {
  int source = 0, target = 0;
  bool sure = true;
  friend bool operator==(const Link&, const Link&) = default;
};

/// For each token of one side the token that it depends on and how. A language's tokens form a tree: one head is
/// -1 (label "root"), and labels are those of Universal Dependencies (de Marneffe et al. 2021). In an artificial
/// task, the token that its mechanism looks at, or -1 (label "").
struct Dependencies {
  std::vector<int> heads;
  std::vector<std::string_view> labels;  ///< literals, which live as long as the program
  friend bool operator==(const Dependencies&, const Dependencies&) = default;
};

/// What a sentence of the toy language tests.
enum class Phenomenon {
  names,       ///< a name is copied
  articles,    ///< an article has the gender, case and number of its noun
  agreement,   ///< a finite verb has the number of its subject
  verb_final,  ///< the finite verb ends a subordinate clause
  inversion,   ///< the finite verb is second, before its subject, where something else is first
  particles,   ///< the particle of a separable verb ends its clause
  bracket,     ///< the participle ends a clause whose auxiliary is second
  attachment,  ///< a prepositional phrase belongs to the verb or to the object
  relatives,   ///< a relative pronoun has the gender of its antecedent and the case of its role
  pronouns,    ///< a pronoun has the gender of its antecedent
  negation,    ///< nicht or kein, by what is negated
  senses,      ///< a word with two translations, of which the context allows one
};
inline constexpr std::array<std::string_view, 12> phenomenon_names{
    "names",   "articles",   "agreement", "verb_final", "inversion", "particles",
    "bracket", "attachment", "relatives", "pronouns",   "negation",  "senses"};
constexpr std::string_view name(Phenomenon phenomenon) {
  return phenomenon_names[static_cast<std::size_t>(phenomenon)];
}

/// One phenomenon at one place of a target. Positions are indices of target tokens.
struct Probe {
  Phenomenon phenomenon{};
  /// The first token at which target and contrast differ: what the phenomenon decides.
  int slot = 0;
  /// The word that has or takes the right form or place, and the word that says which; cue is -1 where only the
  /// source says it (names). verb_final: finite verb and subordinator; inversion: finite verb and subject;
  /// particles: particle and finite verb; bracket: participle and auxiliary; attachment: the phrase's noun and its
  /// head; negation: nicht or kein, and the verb or noun that it negates.
  int word = 0, cue = -1;
  /// |word − cue|, or 0 without a cue.
  int distance = 0;
  /// agreement: nouns and names between subject and verb whose number is not the subject's. Else 0.
  int attractors = 0;
  /// Clauses that the word's clause is embedded in.
  int depth = 0;
  /// The whole target with the wrong form, or in the wrong order, and nothing else changed.
  std::vector<std::string> contrast;
};

/// A sentence, its translation, and what is known about them.
struct Pair {
  std::vector<std::string> source, target;
  std::vector<Link> alignment;  ///< by target, then source
  Dependencies source_tree, target_tree;
  std::vector<Probe> probes;
  /// Most clauses one in another, the main clause not counted.
  int depth = 0;
  /// The largest Probe::attractors that a subject and its verb would have.
  int attractors = 0;
  /// Whether it holds a combination that training never sees.
  bool held_out = false;
};

/// Tokens with spaces between them.
std::string text(const std::vector<std::string>& tokens);

}  // namespace polyhead::data
