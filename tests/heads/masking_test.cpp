#include "polyhead/heads/masking.h"

#include <gmock/gmock.h>

#include "models.h"
#include "polyhead/heads/head_set.h"

namespace polyhead::heads {
namespace {

using decode::message_of;
using Kind = nn::AttentionKind;

constexpr Head encoder_head{{Kind::encoder, 0}, 1}, decoder_head{{Kind::decoder, 1}, 0},
    cross_head{{Kind::cross, 0}, 1};

/// What the heads of one attention give, [row·width + column], of every sentence.
std::vector<std::vector<double>> outputs_of(const nn::Transformer& model,
                                            std::span<const decode::TokenPair> pairs,
                                            const nn::AttentionSite& site,
                                            const decode::AttentionHook& hook) {
  std::vector<std::vector<double>> result(pairs.size());
  decode::score(model, pairs, 1, {}, [&](const nn::AttentionCall& call, const decode::QueryRows& rows) {
    nn::AttentionInputs inputs = hook(call, rows);
    if (call.site == site)
      inputs.observe = [&result, queries = call.queries,
                        sentences = rows.sentences](const nn::AttentionFlow& flow) {
        for (std::int64_t s = 0; s < queries.count(); ++s) {
          const auto values =
              flow.output.value().slice_rows(queries[s].begin, queries[s].length).span<double>();
          result[static_cast<std::size_t>(sentences[static_cast<std::size_t>(s)])].assign(values.begin(),
                                                                                          values.end());
        }
      };
    return inputs;
  });
  return result;
}

TEST(Masking, AHeadsMeanStandsInForItAtEveryPosition) {
  const nn::Transformer model = decode::toy_model(20, DType::f64);
  const RandomPairs pairs(5, 20, 7);
  const HeadOutputs outputs(model, pairs.ids, 2);
  const Masking masking(model, MaskMethod::mean, &outputs);
  const nn::AttentionSite site = encoder_head.site;
  const auto plain = outputs_of(model, pairs.ids, site, Masking(model, MaskMethod::zero).hook({}));
  const auto masked = outputs_of(model, pairs.ids, site, masking.hook({encoder_head}));
  std::vector<double> mean(8);
  double rows = 0;
  for (const auto& sentence : plain)
    for (std::size_t i = 0; i < sentence.size(); i += 16, ++rows)
      for (std::size_t c = 0; c < 8; ++c) mean[c] += sentence[i + 8 + c];
  for (std::size_t s = 0; s < plain.size(); ++s)
    for (std::size_t i = 0; i < plain[s].size(); ++i)
      EXPECT_NEAR(masked[s][i], i % 16 < 8 ? plain[s][i] : mean[i % 8] / rows, 1e-6)
          << "sentence " << s << ", " << i;
}

TEST(Masking, OutputsAreResampledFromTheSamePositionOfOneOtherSentence) {
  const nn::Transformer model = decode::toy_model(20, DType::f64);
  const RandomPairs pairs(6, 20, 7);
  const HeadOutputs outputs(model, pairs.ids, 1);
  const nn::AttentionSite site = encoder_head.site;
  const auto plain = outputs_of(model, pairs.ids, site, Masking(model, MaskMethod::zero).hook({}));
  const auto masked = outputs_of(model, pairs.ids, site,
                                 Masking(model, MaskMethod::resample, &outputs, 5).hook({encoder_head}));
  const auto is_from = [&](std::size_t s, std::size_t other) {
    for (std::size_t i = 0; i < plain[s].size(); ++i) {
      const std::size_t row = std::min(i / 16, plain[other].size() / 16 - 1);
      const double expected = i % 16 < 8 ? plain[s][i] : plain[other][row * 16 + i % 16];
      if (std::abs(masked[s][i] - expected) > 1e-6) return false;
    }
    return true;
  };
  for (std::size_t s = 0; s < plain.size(); ++s) {
    EXPECT_FALSE(is_from(s, s));
    int found = 0;
    for (std::size_t other = 0; other < plain.size(); ++other) found += is_from(s, other);
    EXPECT_EQ(found, 1) << "sentence " << s;
  }
}

/// Translating with heads masked, from the cache, gives what scoring the translations at once gives: rows and positions
/// are those of the sentence in either.
class EveryMethod : public ::testing::TestWithParam<MaskMethod> {};
TEST_P(EveryMethod, IsTheSameInCachedDecodingAsOverTheWholeTarget) {
  const nn::Transformer model = decode::toy_model(20, DType::f64);
  const RandomPairs pairs(7, 20, 9);
  const HeadOutputs outputs(model, pairs.ids, 1);
  const Masking masking(model, GetParam(), &outputs);
  const decode::AttentionHook hook = masking.hook({encoder_head, decoder_head, cross_head});
  const auto translate = [&](int threads) {
    return decode::translate(model, decode::views(pairs.sources), {.beam_size = 2}, threads, {}, nullptr,
                             hook);
  };
  const auto translations = translate(1);
  EXPECT_EQ(translate(3), translations);
  std::vector<decode::TokenPair> found;
  for (std::size_t i = 0; i < translations.size(); ++i)
    found.push_back({pairs.sources[i], translations[i].front().ids});
  const auto with = decode::score(model, found, 1, {}, hook), without = decode::score(model, found, 1);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(with[i].log_probability, translations[i].front().log_probability, 1e-8) << "sentence " << i;
    EXPECT_GT(std::abs(with[i].log_probability - without[i].log_probability), 1e-6);
  }
}
INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod,
                         ::testing::Values(MaskMethod::zero, MaskMethod::mean, MaskMethod::resample,
                                           MaskMethod::uniform),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST(Masking, SaysWhatItNeeds) {
  const nn::Transformer model = decode::toy_model(20);
  EXPECT_EQ(message_of<Error>([&] { Masking(model, MaskMethod::mean); }),
            "masking: mean needs the heads' outputs");
  const RandomPairs pairs(1, 20, 4);
  const HeadOutputs outputs(model, pairs.ids, 1);
  EXPECT_EQ(message_of<DataError>([&] { Masking(model, MaskMethod::resample, &outputs); }),
            "masking: resample from another sentence of 1, expected at least 2");
}

TEST(HeadSet, NamesAreReadAndWritten) {
  const nn::ModelConfig model = decode::toy_config();
  const std::vector<Head> heads = parse_heads(" encoder.0.1, cross.1.0", model);
  EXPECT_EQ(heads, (std::vector<Head>{{{Kind::encoder, 0}, 1}, {{Kind::cross, 1}, 0}}));
  EXPECT_EQ(names(heads), "encoder.0.1,cross.1.0");
  EXPECT_EQ(others(heads[0], model), (std::vector<Head>{{{Kind::encoder, 0}, 0}}));
}

TEST(HeadSet, ErrorsNameTheHead) {
  const auto error = [](const char* text) {
    return message_of<Error>([&] { parse_heads(text, decode::toy_config()); });
  };
  EXPECT_EQ(error(""), "no heads given, expected such as encoder.0.3,cross.1.0");
  for (const char* bad :
       {"encoder.0", "encdr.0.1", "encoder.0.x", "encoder.-1.0", "encoder.0.1.2", "encoder..1"})
    EXPECT_EQ(error(bad),
              "head \"" + std::string(bad) +
                  "\", expected KIND.LAYER.HEAD such as encoder.0.3, KIND one of encoder, decoder, cross");
  EXPECT_EQ(error("cross.0.0,,cross.0.1"),
            "head \"\", expected KIND.LAYER.HEAD such as encoder.0.3, KIND one of encoder, decoder, cross");
  EXPECT_EQ(error("cross.2.0"),
            "head \"cross.2.0\": the model has 2 layers of cross attention, counted from 0");
  EXPECT_EQ(error("cross.1.2"), "head \"cross.1.2\": the layer has 2 heads, counted from 0");
  EXPECT_EQ(error("cross.1.1,cross.1.1"), "head \"cross.1.1\" given twice");
}

}  // namespace
}  // namespace polyhead::heads
