#include "polyhead/metrics/ter.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "edit_distance.h"
#include "polyhead/core/unicode.h"

namespace polyhead::metrics {

namespace {

constexpr std::size_t max_shift_size = 10;
constexpr std::size_t max_shift_distance = 50;
constexpr int max_candidates = 1000;

/// How the words of a hypothesis and a reference stand to each other after an edit distance.
struct Alignment {
  std::vector<std::ptrdiff_t> position;                 // of each reference word in the hypothesis, or -1
  std::vector<bool> reference_wrong, hypothesis_wrong;  // whether an edit touches a word
};

Alignment align(const std::vector<Edit>& trace) {
  Alignment result;
  std::ptrdiff_t position = -1;
  for (const Edit edit : trace) {
    const bool wrong = edit != Edit::keep;
    if (edit != Edit::insert) {
      ++position;
      result.hypothesis_wrong.push_back(wrong);
    }
    if (edit != Edit::remove) {
      result.position.push_back(position);
      result.reference_wrong.push_back(wrong);
    }
  }
  return result;
}

bool any(const std::vector<bool>& flags, std::size_t begin, std::size_t length) {
  const auto first = flags.begin() + static_cast<std::ptrdiff_t>(begin);
  return std::find(first, first + static_cast<std::ptrdiff_t>(length), true) !=
         first + static_cast<std::ptrdiff_t>(length);
}

/// The run of `length` words at `start` taken out and put before the word at `target`. Inside the run,
/// `target` counts from what is left after it was taken out: a quirk that the scores depend on.
WordIds shifted(const WordIds& words, std::size_t start, std::size_t length, std::size_t target) {
  WordIds result = words;
  const auto at = [&](std::size_t i) {
    return result.begin() + static_cast<std::ptrdiff_t>(std::min(i, result.size()));
  };
  if (target < start)
    std::rotate(at(target), at(start), at(start + length));
  else
    std::rotate(at(start), at(start + length), at(target > start + length ? target : target + length));
  return result;
}

struct Run {
  std::size_t hypothesis, reference, length;
};

struct Shift {
  std::int32_t gain = 0;
  std::size_t length = 0, start = 0, target = 0;
  WordIds words;

  /// The larger gain first, then the longer run, the earlier start and the earlier target.
  bool better_than(const Shift& other) const {
    return std::tuple(gain, length, other.start, other.target) >
           std::tuple(other.gain, other.length, start, target);
  }
};

/// The greedy search for shifts of one hypothesis towards one reference.
class ShiftSearch {
 public:
  ShiftSearch(const WordIds& hypothesis, const WordIds& reference)
      : words_(hypothesis), reference_(reference), distance_(reference, hypothesis.size()) {}

  /// Shifts plus the edits that are left after them.
  std::int64_t edits() {
    std::int64_t shifts = 0;
    for (;;) {
      const std::int32_t before = distance_(words_);
      Shift best = best_shift(before);
      if (candidates_ >= max_candidates || best.gain <= 0) return shifts + distance_(words_);
      ++shifts;
      words_ = std::move(best.words);
    }
  }

 private:
  Shift best_shift(std::int32_t before) {
    alignment_ = align(distance_.trace());
    Shift best;
    for (std::size_t h = 0; h < words_.size(); ++h) {
      const std::size_t begin = h > max_shift_distance ? h - max_shift_distance : 0;
      const std::size_t end = std::min(reference_.size(), h + max_shift_distance + 1);
      for (std::size_t r = begin; r < end; ++r)
        for (std::size_t length = 1; matches({h, r, length}); ++length) {
          try_targets({h, r, length}, before, best);
          if (candidates_ >= max_candidates) return best;
        }
    }
    return best;
  }

  /// Whether the last word of the run, whose earlier words are known to match, matches too.
  bool matches(const Run& run) const {
    const std::size_t h = run.hypothesis + run.length - 1, r = run.reference + run.length - 1;
    return run.length <= max_shift_size && h < words_.size() && r < reference_.size() &&
           words_[h] == reference_[r];
  }

  /// Tries to move a run that is wrong where it stands next to each of the words it belongs to.
  void try_targets(const Run& run, std::int32_t before, Shift& best) {
    if (!any(alignment_.hypothesis_wrong, run.hypothesis, run.length)) return;
    if (!any(alignment_.reference_wrong, run.reference, run.length)) return;
    const auto start = static_cast<std::ptrdiff_t>(run.hypothesis);
    const std::ptrdiff_t aligned = alignment_.position[run.reference];
    if (aligned >= start && aligned < start + static_cast<std::ptrdiff_t>(run.length)) return;
    std::ptrdiff_t previous = -1;
    for (std::size_t i = 0; i <= run.length; ++i) {
      const std::size_t r = run.reference + i;  // the word after the target
      const std::ptrdiff_t target = r == 0 ? 0 : alignment_.position[r - 1] + 1;
      if (target == previous) continue;
      previous = target;
      Shift shift{0, run.length, run.hypothesis, static_cast<std::size_t>(target), {}};
      shift.words = shifted(words_, shift.start, shift.length, shift.target);
      shift.gain = before - distance_(shift.words);
      if (best.length == 0 || shift.better_than(best)) best = std::move(shift);
      ++candidates_;
    }
  }

  WordIds words_;
  const WordIds& reference_;
  BeamEditDistance distance_;
  Alignment alignment_;
  int candidates_ = 0;
};

/// Numbers words in the order in which they are first seen.
class Vocabulary {
 public:
  WordIds ids(const std::string& line, bool case_sensitive) {
    WordIds ids;
    for (const std::string& word : unicode::split(case_sensitive ? line : unicode::lowercase(line)))
      ids.push_back(ids_.emplace(word, static_cast<std::int32_t>(ids_.size())).first->second);
    return ids;
  }

 private:
  std::unordered_map<std::string, std::int32_t> ids_;
};

struct Statistics {
  std::int64_t edits = 0;
  double reference_length = 0;
};

Statistics count_line(const Corpus& corpus, std::size_t line, bool case_sensitive) {
  Vocabulary vocabulary;
  const WordIds hypothesis = vocabulary.ids(corpus.hypotheses[line], case_sensitive);
  std::vector<std::int64_t> edits;
  std::size_t length = 0;
  for (const auto& stream : corpus.references) {
    const WordIds reference = vocabulary.ids(stream[line], case_sensitive);
    length += reference.size();
    edits.push_back(ShiftSearch(hypothesis, reference).edits());
  }
  return {*std::min_element(edits.begin(), edits.end()),
          static_cast<double>(length) / static_cast<double>(corpus.references.size())};
}

double percent(const Statistics& sum) {
  if (sum.reference_length > 0) return 100 * (static_cast<double>(sum.edits) / sum.reference_length);
  return sum.edits > 0 ? 100 : 0;
}

}  // namespace

Score ter(const Corpus& corpus, const Options& options) {
  Statistics sum;
  for (std::size_t line = 0; line < corpus.size(); ++line) {
    const Statistics statistics = count_line(corpus, line, options.case_sensitive);
    sum.edits += statistics.edits;
    sum.reference_length += statistics.reference_length;
  }
  Score result;
  result.score = percent(sum);
  result.details = {{"edits", static_cast<double>(sum.edits)}, {"reference_length", sum.reference_length}};
  result.signature = make_signature(corpus, {{"case", options.case_sensitive ? "mixed" : "lc"},
                                             {"tok", "tercom"},
                                             {"norm", "no"},
                                             {"punct", "yes"},
                                             {"asian", "no"}});
  return result;
}

SentenceStatistics ter_statistics(const Corpus& corpus, const Options& options) {
  std::vector<double> rows;
  for (std::size_t line = 0; line < corpus.size(); ++line) {
    const Statistics statistics = count_line(corpus, line, options.case_sensitive);
    rows.insert(rows.end(), {static_cast<double>(statistics.edits), statistics.reference_length});
  }
  return {2, std::move(rows), [](std::span<const double> sums) {
            return percent({static_cast<std::int64_t>(sums[0]), sums[1]});
          }};
}

}  // namespace polyhead::metrics
