#include "data/artificial.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace polyhead::data {
namespace {

std::string letter(std::uint64_t i) { return {static_cast<char>('a' + i)}; }

std::vector<std::string> random_letters(RandomStream& random) {
  std::vector<std::string> letters(3 + random.below(10));
  for (std::string& one : letters) one = letter(random.below(26));
  return letters;
}

void look(Dependencies& tree, std::size_t from, std::size_t at, std::string_view label) {
  tree.heads[from] = static_cast<int>(at);
  tree.labels[from] = label;
}

/// Target token i is source token from[i].
Pair select(std::vector<std::string> source, const std::vector<std::size_t>& from) {
  Pair pair;
  for (std::size_t i = 0; i < from.size(); ++i) {
    pair.target.push_back(source[from[i]]);
    pair.alignment.push_back({static_cast<int>(from[i]), static_cast<int>(i), true});
  }
  pair.source = std::move(source);
  pair.source_tree = no_heads(pair.source.size());
  pair.target_tree = no_heads(pair.target.size());
  return pair;
}

std::vector<std::size_t> range(std::size_t n) {
  std::vector<std::size_t> indices(n);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return indices;
}

/// The points of draw_nearest: 64 in 8 dimensions, always the same.
constexpr std::size_t points = 64, dimensions = 8;

std::array<std::array<int, dimensions>, points> make_points() {
  std::array<std::array<int, dimensions>, points> table{};
  RandomStream random(RngKey{0}.fold("points"));
  for (auto& point : table)
    for (int& coordinate : point) coordinate = static_cast<int>(random.below(2001)) - 1000;
  return table;
}

int squared_distance(std::size_t a, std::size_t b) {
  static const auto table = make_points();
  int sum = 0;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const int difference = table[a][d] - table[b][d];
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

Dependencies no_heads(std::size_t tokens) {
  return {std::vector<int>(tokens, -1), std::vector<std::string_view>(tokens)};
}

Pair draw_copy(RandomStream& random) {
  std::vector<std::string> source = random_letters(random);
  const auto from = range(source.size());
  return select(std::move(source), from);
}

Pair draw_reverse(RandomStream& random) {
  std::vector<std::string> source = random_letters(random);
  auto from = range(source.size());
  std::reverse(from.begin(), from.end());
  return select(std::move(source), from);
}

Pair draw_sort(RandomStream& random) {
  std::vector<std::string> source = random_letters(random);
  auto from = range(source.size());
  std::stable_sort(from.begin(), from.end(),
                   [&](std::size_t a, std::size_t b) { return source[a] < source[b]; });
  Pair pair = select(std::move(source), from);
  // Which of equal letters comes first is not said: each of them may be it.
  pair.alignment.clear();
  for (std::size_t i = 0; i < pair.target.size(); ++i) {
    const auto equal = std::count(pair.source.begin(), pair.source.end(), pair.target[i]);
    for (std::size_t j = 0; j < pair.source.size(); ++j)
      if (pair.source[j] == pair.target[i])
        pair.alignment.push_back({static_cast<int>(j), static_cast<int>(i), equal == 1});
  }
  return pair;
}

/// Letters with digits after them and one of the letters again: its digit.
Pair draw_recall(RandomStream& random) {
  auto keys = range(26);
  shuffle(keys, random);
  const std::size_t count = 3 + random.below(8), asked = random.below(count);
  std::vector<std::string> source;
  for (std::size_t i = 0; i < count; ++i) {
    source.push_back(letter(keys[i]));
    source.push_back(std::to_string(random.below(10)));
  }
  source.push_back(letter(keys[asked]));
  Pair pair = select(std::move(source), {2 * asked + 1});
  // An induction head looks at what came after the same letter, and needs to know of each digit the letter before.
  for (std::size_t i = 0; i < count; ++i) look(pair.source_tree, 2 * i + 1, 2 * i, "previous");
  look(pair.source_tree, 2 * count, 2 * asked + 1, "induction");
  return pair;
}

/// Brackets of two kinds, some of them still open: the brackets that close them.
Pair draw_dyck(RandomStream& random) {
  const std::size_t length = 8 + random.below(13);
  Pair pair;
  pair.source_tree = no_heads(length);
  std::vector<std::size_t> open;
  const auto closing = [&](std::size_t i) { return pair.source[i] == "(" ? ")" : "]"; };
  for (std::size_t i = 0; i < length; ++i) {
    const bool last = i + 1 == length && open.size() < 2;  // something stays open
    if (open.empty() || last || random.below(2) == 0) {
      pair.source.emplace_back(random.below(2) == 0 ? "(" : "[");
      open.push_back(i);
    } else {
      pair.source.emplace_back(closing(open.back()));
      look(pair.source_tree, i, open.back(), "match");
      open.pop_back();
    }
  }
  for (; !open.empty(); open.pop_back()) {
    pair.alignment.push_back({static_cast<int>(open.back()), static_cast<int>(pair.target.size()), true});
    pair.target.emplace_back(closing(open.back()));
  }
  pair.target_tree = no_heads(pair.target.size());
  return pair;
}

/// Points and, last, one more: the nearest of the others to it.
Pair draw_nearest(RandomStream& random) {
  auto chosen = range(points);
  shuffle(chosen, random);
  chosen.resize(5 + random.below(8));
  const std::size_t query = chosen.size() - 1;
  std::vector<std::string> source;
  for (const std::size_t point : chosen) source.push_back("p" + std::to_string(point));
  const auto nearest = std::min_element(chosen.begin(), chosen.end() - 1, [&](std::size_t a, std::size_t b) {
    return squared_distance(a, chosen[query]) < squared_distance(b, chosen[query]);
  });
  const auto at = static_cast<std::size_t>(nearest - chosen.begin());
  Pair pair = select(std::move(source), {at});
  look(pair.source_tree, query, at, "nearest");
  return pair;
}

}  // namespace polyhead::data
