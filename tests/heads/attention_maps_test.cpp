#include "polyhead/heads/attention_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "models.h"

namespace polyhead::heads {
namespace {

using ::testing::HasSubstr;
using Kind = nn::AttentionKind;

TEST(AttentionMaps, AreThoseOfAllHeadsInOrder) {
  nn::ModelConfig config = decode::toy_config();
  config.decoder_layers = 1;
  const std::vector<Head> expected{{{Kind::encoder, 0}, 0}, {{Kind::encoder, 0}, 1}, {{Kind::encoder, 1}, 0},
                                   {{Kind::encoder, 1}, 1}, {{Kind::decoder, 0}, 0}, {{Kind::decoder, 0}, 1},
                                   {{Kind::cross, 0}, 0},   {{Kind::cross, 0}, 1}};
  EXPECT_EQ(all_heads(config), expected);
}

TEST(AttentionMaps, AreUniformWhereQueriesAreZero) {
  nn::Transformer model = decode::toy_model(12);
  make_uniform(model);
  const RandomPairs pairs(20, 12, 9);
  const std::vector<Head> heads = all_heads(model.config());
  std::int64_t visited = 0;
  AttentionMaps(model, pairs.ids)
      .visit(1, [&](std::int64_t, std::int64_t pair, std::span<const AttentionMap> maps) {
        EXPECT_EQ(pair, visited++);
        ASSERT_EQ(maps.size(), heads.size());
        for (std::size_t h = 0; h < maps.size(); ++h) {
          const auto& [source, target] = pairs.ids[static_cast<std::size_t>(pair)];
          const Kind kind = heads[h].site.kind;
          ASSERT_EQ(maps[h].queries(), std::ssize(kind == Kind::encoder ? source : target));
          ASSERT_EQ(maps[h].keys(), std::ssize(kind == Kind::decoder ? target : source));
          for (std::int64_t q = 0; q < maps[h].queries(); ++q)
            for (std::int64_t k = 0; k < maps[h].keys(); ++k) {
              const std::int64_t seen = kind == Kind::decoder ? q + 1 : maps[h].keys();
              EXPECT_NEAR(maps[h](q, k), k < seen ? 1. / static_cast<double>(seen) : 0, 1e-6);
            }
        }
      });
  EXPECT_EQ(visited, 20);
}

TEST(AttentionMaps, AreTheWeightsOfTheForwardPass) {
  const nn::Transformer model = decode::toy_model(12);
  const RandomPairs pairs(5, 12, 9);
  std::vector<AttentionMap> together;
  AttentionMaps(model, pairs.ids)
      .visit(1, [&](std::int64_t, std::int64_t pair, std::span<const AttentionMap> maps) {
        if (pair == 3) together.assign(maps.begin(), maps.end());
      });

  // The same pair alone, tapped by hand.
  decode::Workspace w;
  const auto batch = [&](const std::vector<std::int32_t>& ids, const Segment& segment) {
    const Tensor t = w.activations.tensor({std::ssize(ids)}, DType::i32);
    std::copy(ids.begin(), ids.end(), t.as<std::int32_t>());
    return nn::TokenBatch{t, {{&segment, 1}, 0}};
  };
  const std::vector<std::int32_t>&source = pairs.sources[3], &target = pairs.targets[3];
  std::vector<std::int32_t> inputs{decode::bos_id};
  inputs.insert(inputs.end(), target.begin(), target.end() - 1);
  const Segment source_rows{0, static_cast<std::int32_t>(source.size())},
      target_rows{0, static_cast<std::int32_t>(target.size())};
  std::vector<std::pair<nn::AttentionSite, Tensor>> taps;
  const nn::AttentionHook hook = [&](const nn::AttentionCall& call) {
    taps.emplace_back(call.site,
                      w.activations.tensor({call.queries.rows(), call.heads, call.keys.rows()}, DType::f32));
    return nn::AttentionInputs{.weights = taps.back().second};
  };
  Tape tape(w.exec, false);
  const nn::Context context{.tape = tape, .parameters = model.parameters(), .attention = &hook};
  const nn::TokenBatch sources = batch(source, source_rows);
  model.decode(context, batch(inputs, target_rows), model.encode(context, sources), sources.segments);

  const std::vector<Head> heads = all_heads(model.config());
  ASSERT_EQ(together.size(), heads.size());
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const auto tapped =
        std::find_if(taps.begin(), taps.end(), [&](const auto& t) { return t.first == heads[h].site; });
    ASSERT_NE(tapped, taps.end());
    const Shape& shape = tapped->second.shape;
    ASSERT_EQ(together[h].queries(), shape[0]);
    ASSERT_EQ(together[h].keys(), shape[2]);
    for (std::int64_t q = 0; q < shape[0]; ++q)
      for (std::int64_t k = 0; k < shape[2]; ++k)
        EXPECT_EQ(
            together[h](q, k),
            static_cast<double>(tapped->second.as<float>()[(q * shape[1] + heads[h].head) * shape[2] + k]));
  }
}

/// Σ of all weights, in order, of each head, and how often it was told of a row that does not sum to 1.
struct Sums {
  std::vector<double> values;
  std::vector<std::int64_t> pairs;
  int wrong_rows = 0;
  void add(std::int64_t pair, std::span<const AttentionMap> maps) {
    pairs.push_back(pair);
    values.resize(maps.size());
    for (std::size_t h = 0; h < maps.size(); ++h)
      for (std::int64_t q = 0; q < maps[h].queries(); ++q) {
        const auto row = maps[h].row(q);
        const double sum = std::accumulate(row.begin(), row.end(), 0.);
        wrong_rows += std::abs(sum - 1) > 1e-5;
        values[h] += row[0] / 3 + sum;
      }
  }
  void merge(const Sums& other) {
    values.resize(other.values.size());
    for (std::size_t h = 0; h < values.size(); ++h) values[h] += other.values[h];
    pairs.insert(pairs.end(), other.pairs.begin(), other.pairs.end());
    wrong_rows += other.wrong_rows;
  }
};

TEST(AttentionMaps, GatherTheSameBitsOnAnyThreads) {
  const nn::Transformer model = decode::toy_model(30);
  const RandomPairs pairs(400, 30, 20);
  const AttentionMaps maps(model, pairs.ids);
  ASSERT_GT(maps.batches(), 3);
  std::int64_t read = 0;
  const Sums one = maps.gather(Sums{}, 1, [&](std::int64_t n) { read += n; });
  EXPECT_EQ(read, 400);
  EXPECT_EQ(one.wrong_rows, 0);
  std::vector<std::int64_t> in_order(400);
  std::iota(in_order.begin(), in_order.end(), 0);
  EXPECT_EQ(one.pairs, in_order);
  for (const int threads : {2, 5}) {
    const Sums more = maps.gather(Sums{}, threads);
    EXPECT_EQ(more.values, one.values);
    EXPECT_EQ(more.pairs, in_order);
  }
}

TEST(AttentionMaps, RefusePairsThatTheModelCannotRead) {
  const nn::Transformer model = decode::toy_model(12);
  const std::vector<std::int32_t> fine{5, 2}, empty, too_long(41, 5);
  const auto message = [&](const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& target) {
    const std::vector<decode::TokenPair> pairs{{fine, fine}, {source, target}};
    return testing::message_of<DataError>([&] { AttentionMaps(model, pairs); });
  };
  EXPECT_EQ(message(fine, empty), "pair 2 has a side of 0 tokens, expected 1 to 40 (model.max_length)");
  EXPECT_EQ(message(too_long, fine), "pair 2 has a side of 41 tokens, expected 1 to 40 (model.max_length)");
}

}  // namespace
}  // namespace polyhead::heads
