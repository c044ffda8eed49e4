#include "polyhead/data/tasks.h"

#include <algorithm>
#include <unordered_set>

#include "data/artificial.h"
#include "polyhead/core/error.h"
#include "polyhead/core/unicode.h"
#include "polyhead/data/grammar/grammar.h"

namespace polyhead::data {

std::string text(const std::vector<std::string>& tokens) {
  std::string line;
  for (const std::string& token : tokens) line.append(line.empty() ? "" : " ").append(token);
  return line;
}

namespace {

Pair number_pair(int number) {
  Pair pair;
  pair.source = unicode::split(english_number(number));
  pair.target = unicode::split(german_number(number));
  pair.source_tree = no_heads(pair.source.size());
  pair.target_tree = no_heads(pair.target.size());
  return pair;
}

Pair draw_number(RandomStream& random) {
  constexpr std::uint64_t limits[] = {10'000, 100'000, 1'000'000};
  return number_pair(static_cast<int>(random.below(limits[random.below(3)])));
}

/// 26^12: those of twelve letters are nearly all.
constexpr std::int64_t letter_lines = 95'428'956'661'682'176;
constexpr std::int64_t many = 100'000'000;

constexpr Task task_table[] = {
    {"grammar", nullptr, many},        {"numbers", draw_number, 1'000'000, 1000, number_pair},
    {"copy", draw_copy, letter_lines}, {"reverse", draw_reverse, letter_lines},
    {"sort", draw_sort, letter_lines}, {"recall", draw_recall, many},
    {"dyck", draw_dyck, many},         {"nearest", draw_nearest, many},
};

using Take = std::function<void(Pair&&)>;

/// New sentences of one run of a task, none of them twice.
class Source {
 public:
  Source(const Task& task, std::uint64_t seed)
      : task_(task), random_(RngKey{seed}.fold("task").fold(task.name)) {}

  /// Whether it was new.
  bool add(Pair&& pair, const Take& take) {
    if (!seen_.insert(text(pair.source)).second) return false;
    take(std::move(pair));
    return true;
  }
  void fill(int size, const Take& take) {
    while (size > 0) size -= add(task_.draw(random_), take) ? 1 : 0;
  }

 private:
  const Task& task_;
  RandomStream random_;
  std::unordered_set<std::string> seen_;
};

void draw_pairs(const Task& task, const DataConfig& config, Split split, std::uint64_t seed,
                const Take& take) {
  const auto ignore = [](Pair&&) {};
  const auto where = [&](Split filled) { return filled == split ? take : Take(ignore); };
  Source source(task, seed);
  // Validation and test first, so that they do not depend on the size of training.
  source.fill(config.valid_size, where(Split::valid));
  source.fill(config.test_size, where(Split::test));
  if (split != Split::train) return;
  int left = config.train_size;
  for (int i = 0; i < std::min(task.basics, config.train_size); ++i)
    left -= source.add(task.basic(i), take) ? 1 : 0;
  source.fill(left, take);
}

}  // namespace

std::span<const Task> tasks() { return task_table; }

int size_of(const DataConfig& config, Split split) {
  return split == Split::train   ? config.train_size
         : split == Split::valid ? config.valid_size
                                 : config.test_size;
}

void each_pair(const DataConfig& config, Split split, std::uint64_t seed, const Take& take) {
  const auto* const task = std::find_if(std::begin(task_table), std::end(task_table),
                                        [&](const Task& t) { return t.name == config.task; });
  require(task != std::end(task_table), "data.task: \"", config.task, "\" is no toy task");
  const std::int64_t total = std::int64_t{config.train_size} + config.valid_size + config.test_size;
  require<DataError>(total <= task->sentences / 2, "data.task ", task->name,
                     ": train_size, valid_size and test_size are ", total, " sentences together; at most ",
                     task->sentences / 2);
  if (task->draw != nullptr) return draw_pairs(*task, config, split, seed, take);
  grammar::Generator generator(name(split), seed);
  for (int i = 0; i < size_of(config, split); ++i) take(generator.next());
}

ParallelText generate(const DataConfig& config, Split split, std::uint64_t seed) {
  ParallelText result;
  result.name = concat(config.task, " (", name(split), ")");
  each_pair(config, split, seed, [&](const Pair& pair) {
    result.source.push_back(text(pair.source));
    result.target.push_back(text(pair.target));
  });
  return result;
}

}  // namespace polyhead::data
