#include "polyhead/data/tasks.h"

#include <algorithm>
#include <unordered_set>

#include "polyhead/core/error.h"

namespace polyhead::data {
namespace {

std::string random_letters(RandomStream& random) {
  std::string letters(3 + random.below(10), ' ');
  for (char& letter : letters) letter = static_cast<char>('a' + random.below(26));
  return letters;
}

std::string words(const std::string& letters) {
  std::string line;
  for (const char letter : letters) line.append(line.empty() ? "" : " ") += letter;
  return line;
}

SentencePair draw_copy(RandomStream& random) {
  const std::string letters = random_letters(random);
  return {words(letters), words(letters)};
}

SentencePair draw_reverse(RandomStream& random) {
  const std::string letters = random_letters(random);
  return {words(letters), words({letters.rbegin(), letters.rend()})};
}

SentencePair draw_sort(RandomStream& random) {
  const std::string letters = random_letters(random);
  std::string sorted = letters;
  std::sort(sorted.begin(), sorted.end());
  return {words(letters), words(sorted)};
}

SentencePair number_pair(int number) { return {english_number(number), german_number(number)}; }

SentencePair draw_number(RandomStream& random) {
  constexpr std::uint64_t limits[] = {10'000, 100'000, 1'000'000};
  return number_pair(static_cast<int>(random.below(limits[random.below(3)])));
}

/// 26^12: those of twelve letters are nearly all.
constexpr std::int64_t letter_lines = 95'428'956'661'682'176;

constexpr Task table[] = {
    {"copy", "the source itself", draw_copy, letter_lines},
    {"reverse", "the words from last to first", draw_reverse, letter_lines},
    {"sort", "the words in alphabetical order", draw_sort, letter_lines},
    {"numbers", "English number words to German ones", draw_number, 1'000'000, 1000, number_pair},
};

/// New sentences of one run of a task, none of them twice.
class Source {
 public:
  Source(const Task& task, const DataConfig& config, std::uint64_t seed)
      : task_(task), random_(RngKey{seed}.fold("task").fold(task.name)) {
    const std::int64_t total = std::int64_t{config.train_size} + config.valid_size + config.test_size;
    require<DataError>(total <= task.sentences / 2, "data.task ", task.name,
                       ": train_size, valid_size and test_size are ", total, " sentences together; at most ",
                       task.sentences / 2);
  }

  void add(SentencePair pair, ParallelText& text) {
    if (!seen_.insert(pair.first).second) return;
    text.source.push_back(std::move(pair.first));
    text.target.push_back(std::move(pair.second));
  }
  void fill(int size, ParallelText& text) {
    while (text.source.size() < static_cast<std::size_t>(size)) add(task_.draw(random_), text);
  }

 private:
  const Task& task_;
  RandomStream random_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::span<const Task> tasks() { return table; }

ParallelText generate(const DataConfig& config, Split split, std::uint64_t seed) {
  const auto task =
      std::find_if(std::begin(table), std::end(table), [&](const Task& t) { return t.name == config.task; });
  require(task != std::end(table), "data.task: \"", config.task, "\" is no toy task");
  Source source(*task, config, seed);
  // Validation and test first, so that they do not depend on the size of training.
  ParallelText valid, test, train;
  source.fill(config.valid_size, valid);
  source.fill(config.test_size, test);
  if (split == Split::train) {
    for (int i = 0; i < std::min(task->basics, config.train_size); ++i) source.add(task->basic(i), train);
    source.fill(config.train_size, train);
  }
  ParallelText& text = split == Split::train ? train : split == Split::valid ? valid : test;
  text.name = concat(config.task, " (", name(split), ")");
  return std::move(text);
}

}  // namespace polyhead::data
