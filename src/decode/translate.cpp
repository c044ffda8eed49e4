#include "polyhead/decode/translate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "batch.h"
#include "polyhead/core/memory.h"
#include "search.h"

namespace polyhead::decode {
namespace {

/// Rows whose log-probabilities of all words exist at the same time: of 10,000 pieces they stay near a core, and products of
/// more rows are hardly faster.
constexpr std::int64_t block_rows = 32;

/// The searches of the sentences of a batch, advanced together.
class BatchDecoder {
 public:
  BatchDecoder(const nn::Transformer& model, Exec& exec, const DecodingConfig& config,
               std::span<const TokenIds> sources, Batch batch, const AttentionHook& attention)
      : model_(model),
        config_(config),
        exec_(exec),
        tape_(exec, false),
        hook_([&](const nn::AttentionCall& call) { return attention(call, queries_); }),
        context_{.tape = tape_, .parameters = model.parameters(), .attention = attention ? &hook_ : nullptr},
        batch_(batch) {
    const std::int32_t slots = slots_per_sentence(config);
    for (const std::int64_t i : batch) {
      const TokenIds source = sources[static_cast<std::size_t>(i)];
      const SearchTask task{
          config, source,
          config.target_limit(static_cast<std::int64_t>(source.size()), model.config().max_length),
          slots * static_cast<std::int32_t>(searches_.size())};
      sources_.push_back(source);
      capacity_ = std::max(capacity_, task.limit);
      searches_.push_back(config.method == Method::beam ? make_beam_search(task) : make_sampling(task));
    }
    slots_ = slots * static_cast<std::int64_t>(searches_.size());
  }

  BatchDecoder(const BatchDecoder&) = delete;
  BatchDecoder& operator=(const BatchDecoder&) = delete;

  /// To the end of every search, or `steps` target tokens.
  void run(std::int32_t steps = std::numeric_limits<std::int32_t>::max()) {
    queries_ = {batch_};
    const nn::TokenBatch source = pack(exec_.activations, sources_);
    const Tensor memory =
        exec_.activations.tensor({source.ids.size(), model_.config().d_model}, model_.parameters().dtype());
    {
      const ArenaScope scope(exec_.activations);
      copy(model_.encode(context_, source).value(), memory);
    }
    nn::DecoderState state = model_.start(context_, tape_.leaf(memory), slots_, capacity_);
    for (std::int32_t length = 1; length <= steps && gather(source.segments); ++length) {
      const ArenaScope scope(exec_.activations);
      queries_ = {sentence_of_row_, length - 1};
      observe(model_.step(context_, ids_, slot_of_row_, {memory_of_row_, 0}, state), length);
      const ProfileTimer timer(exec_.profile, "search", Pass::forward);
      for (const auto& search : searches_)
        if (!search->live().empty()) search->advance(state);
    }
  }

  std::vector<Hypothesis> hypotheses(std::size_t sentence) const { return searches_[sentence]->hypotheses(); }

 private:
  struct Row {
    std::size_t sentence, live;
  };

  /// Lists the rows of the next step; false when there are none.
  bool gather(const Segments& memory) {
    rows_.clear(), ids_.clear(), slot_of_row_.clear(), memory_of_row_.clear(), sentence_of_row_.clear();
    for (std::size_t s = 0; s < searches_.size(); ++s) {
      const std::span<const LiveRow> live = searches_[s]->live();
      for (std::size_t i = 0; i < live.size(); ++i) {
        rows_.push_back({s, i});
        ids_.push_back(live[i].id);
        slot_of_row_.push_back(live[i].slot);
        memory_of_row_.push_back(memory[static_cast<std::int64_t>(s)]);
        sentence_of_row_.push_back(batch_[s]);
      }
    }
    return !rows_.empty();
  }

  void observe(Var features, std::int32_t length) {
    if (config_.method == Method::beam)
      observe_best(features, length);
    else
      observe_all(features.value(), length);
  }

  void observe_best(Var features, std::int32_t length) {
    const ops::MostLikely op{.count = 2 * std::int64_t{config_.beam_size}, .excluded = bos_id};
    const ops::MostLikely::Words words = [&] {
      const ProfileTimer timer(exec_.profile, "MostLikely", Pass::forward);
      return model_.most_likely(context_, features, op);
    }();
    const ProfileTimer timer(exec_.profile, "search", Pass::forward);
    for (std::int64_t r = 0; r < words.ids.rows(); ++r)
      observe(r, length, {{words.log_probabilities.slice_rows(r, 1), words.ids.slice_rows(r, 1)}, {}});
  }

  /// A block of rows at a time while their log-probabilities are in cache.
  void observe_all(const Tensor& features, std::int32_t length) {
    for (std::int64_t begin = 0; begin < features.rows(); begin += block_rows) {
      const ArenaScope scope(exec_.activations);
      const std::int64_t count = std::min(block_rows, features.rows() - begin);
      const Tensor block =
          model_.log_probabilities(context_, tape_.leaf(features.slice_rows(begin, count))).value();
      const ProfileTimer timer(exec_.profile, "search", Pass::forward);
      dispatch(block.dtype, [&]<class T>() {
        for (std::int64_t r = 0; r < count; ++r) {
          const Tensor row = block.slice_rows(r, 1);
          row.as<T>()[bos_id] = -std::numeric_limits<T>::infinity();
          observe(begin + r, length, {{}, row});
        }
      });
    }
  }

  void observe(std::int64_t r, std::int32_t length, const Continuations& next) {
    const Row& row = rows_[static_cast<std::size_t>(r)];
    const Tensor& values = next.log_probabilities ? next.log_probabilities : next.best.log_probabilities;
    // The sum of the softmax makes one NaN a row of them.
    const bool number = dispatch(values.dtype, [&]<class T>() { return !std::isnan(*values.as<T>()); });
    require<NumbersError>(number, "sentence ", batch_[row.sentence] + 1,
                          ": log-probabilities of target token ", length, " are not numbers (NaN)");
    require<NumbersError>(searches_[row.sentence]->observe(row.live, next), "sentence ",
                          batch_[row.sentence] + 1, ": no target token ", length,
                          " has a probability above 0");
  }

  const nn::Transformer& model_;
  const DecodingConfig& config_;
  Exec& exec_;
  Tape tape_;
  QueryRows queries_;
  nn::AttentionHook hook_;
  nn::Context context_;
  Batch batch_;
  std::vector<TokenIds> sources_;
  std::vector<std::unique_ptr<Search>> searches_;
  std::int64_t slots_ = 0;
  std::int32_t capacity_ = 0;
  std::vector<Row> rows_;
  std::vector<std::int32_t> ids_, slot_of_row_;
  std::vector<Segment> memory_of_row_;
  std::vector<std::int64_t> sentence_of_row_;
};

/// The sentences that need a search, longest first: the last batches are short ones.
std::vector<std::int64_t> order_of(std::span<const TokenIds> sources, int max_length) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    require<DataError>(sources[i].size() <= static_cast<std::size_t>(max_length), "sentence ", i + 1, " has ",
                       sources[i].size(), " tokens, expected at most ", max_length, " (model.max_length)");
    if (!is_empty(sources[i])) order.push_back(static_cast<std::int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return sources[static_cast<std::size_t>(a)].size() > sources[static_cast<std::size_t>(b)].size();
  });
  return order;
}

std::vector<Batch> batches_of(const nn::Transformer& model, std::span<const TokenIds> sources,
                              std::span<const std::int64_t> order, const DecodingConfig& config,
                              int threads) {
  const std::int64_t slots = slots_per_sentence(config);
  return cut(order, config.batch_tokens, threads, [&](std::int64_t i) {
    const auto tokens = static_cast<std::int64_t>(sources[static_cast<std::size_t>(i)].size());
    // A cache takes memory by the length limit, which may be far above a short source's length.
    return slots * std::max(tokens, config.target_limit(tokens, model.config().max_length) / std::int64_t{8});
  });
}

}  // namespace

std::int64_t expected_memory(const nn::Transformer& model, std::span<const TokenIds> sources,
                             const DecodingConfig& config, int threads) {
  const std::vector<std::int64_t> order = order_of(sources, model.config().max_length);
  const std::vector<Batch> batches = batches_of(model, sources, order, config, threads);
  if (batches.empty()) return 0;
  // Batches have about as many source tokens; their caches differ.
  const auto cache_rows = [&](Batch batch) {  // the longest source is the first
    const auto tokens = static_cast<std::int64_t>(sources[static_cast<std::size_t>(batch.front())].size());
    return std::ssize(batch) * config.target_limit(tokens, model.config().max_length);
  };
  const Batch largest = *std::max_element(batches.begin(), batches.end(),
                                          [&](Batch a, Batch b) { return cache_rows(a) < cache_rows(b); });
  std::int64_t bytes = 0;
  for_each_batch({&largest, 1}, 1, {}, nullptr, [&](Exec& exec, Batch batch) {
    BatchDecoder(model, exec, config, sources, batch, {}).run(1);
    for (const Arena* arena : {&exec.activations, &exec.scratch})
      bytes += in_huge_pages(static_cast<std::int64_t>(arena->peak()));
  });
  bytes *= std::min<std::int64_t>(threads, std::ssize(batches));
  // A node of the tree of hypotheses, in a vector that doubles, its id in the result, and its letters.
  constexpr std::int64_t bytes_of_a_token = 32;
  const std::int64_t slots = slots_per_sentence(config);
  for (const std::int64_t i : order) {
    const auto tokens = static_cast<std::int64_t>(sources[static_cast<std::size_t>(i)].size());
    bytes += bytes_of_a_token * slots * config.target_limit(tokens, model.config().max_length);
  }
  return bytes;
}

std::vector<std::vector<Hypothesis>> translate(const nn::Transformer& model,
                                               std::span<const TokenIds> sources,
                                               const DecodingConfig& config, int threads,
                                               const Progress& progress, Profile* profile,
                                               const AttentionHook& attention) {
  const Hypothesis empty{{}, 0, 0, true};
  std::vector<std::vector<Hypothesis>> results(sources.size(), {empty});
  const std::vector<std::int64_t> order = order_of(sources, model.config().max_length);
  const std::vector<Batch> batches = batches_of(model, sources, order, config, threads);
  if (progress && order.size() < sources.size())
    progress(static_cast<std::int64_t>(sources.size() - order.size()));
  for_each_batch(batches, threads, progress, profile, [&](Exec& exec, Batch batch) {
    BatchDecoder decoder(model, exec, config, sources, batch, attention);
    decoder.run();
    for (std::size_t s = 0; s < batch.size(); ++s)
      results[static_cast<std::size_t>(batch[s])] = decoder.hypotheses(s);
  });
  return results;
}

}  // namespace polyhead::decode
