#include "polyhead/decode/translate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "batch.h"
#include "search.h"

namespace polyhead::decode {
namespace {

/// Rows whose log-probabilities are made at the same time: of 10,000 pieces they stay near a core, and products of more rows
/// are hardly faster.
constexpr std::int64_t block_rows = 32;

/// The searches of the sentences of a batch, advanced together.
class BatchDecoder {
 public:
  BatchDecoder(const nn::Transformer& model, Exec& exec, const DecodingConfig& config,
               std::span<const TokenIds> sources, Batch batch, const AttentionHook& attention)
      : model_(model),
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

  void run() {
    queries_ = {batch_};
    const nn::TokenBatch source = pack(exec_.activations, sources_);
    const Tensor memory =
        exec_.activations.tensor({source.ids.size(), model_.config().d_model}, model_.parameters().dtype());
    {
      const ArenaScope scope(exec_.activations);
      copy(model_.encode(context_, source).value(), memory);
    }
    nn::DecoderState state = model_.start(context_, tape_.leaf(memory), slots_, capacity_);
    for (std::int32_t length = 1; gather(source.segments); ++length) {
      const ArenaScope scope(exec_.activations);
      queries_ = {sentence_of_row_, length - 1};
      observe(model_.step(context_, ids_, slot_of_row_, {memory_of_row_, 0}, state).value(), length);
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

  /// Hands each row's log-probabilities to its search, a block of rows at a time while they are in cache.
  void observe(const Tensor& features, std::int32_t length) {
    for (std::int64_t begin = 0; begin < features.rows(); begin += block_rows) {
      const ArenaScope scope(exec_.activations);
      const std::int64_t count = std::min(block_rows, features.rows() - begin);
      const Tensor block =
          model_.log_probabilities(context_, tape_.leaf(features.slice_rows(begin, count))).value();
      const ProfileTimer timer(exec_.profile, "top_k", Pass::forward);
      for (std::int64_t r = 0; r < count; ++r) {
        const Row& row = rows_[static_cast<std::size_t>(begin + r)];
        const Tensor log_probabilities = block.slice_rows(r, 1);
        forbid_bos(log_probabilities, row, length);
        require<NumbersError>(searches_[row.sentence]->observe(row.live, log_probabilities), "sentence ",
                              batch_[row.sentence] + 1, ": no target token ", length,
                              " has a probability above 0");
      }
    }
  }

  void forbid_bos(const Tensor& log_probabilities, const Row& row, std::int32_t length) const {
    dispatch(log_probabilities.dtype, [&]<class T>() {
      T* values = log_probabilities.as<T>();
      // The sum of the softmax makes one NaN a row of them.
      require<NumbersError>(!std::isnan(values[bos_id]), "sentence ", batch_[row.sentence] + 1,
                            ": log-probabilities of target token ", length, " are not numbers (NaN)");
      values[bos_id] = -std::numeric_limits<T>::infinity();
    });
  }

  const nn::Transformer& model_;
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

}  // namespace

std::vector<std::vector<Hypothesis>> translate(const nn::Transformer& model,
                                               std::span<const TokenIds> sources,
                                               const DecodingConfig& config, int threads,
                                               const Progress& progress, Profile* profile,
                                               const AttentionHook& attention) {
  const Hypothesis empty{{}, 0, 0, true};
  std::vector<std::vector<Hypothesis>> results(sources.size(), {empty});
  const std::vector<std::int64_t> order = order_of(sources, model.config().max_length);
  const std::int64_t slots = slots_per_sentence(config);
  const std::vector<Batch> batches = cut(order, config.batch_tokens, threads, [&](std::int64_t i) {
    const auto tokens = static_cast<std::int64_t>(sources[static_cast<std::size_t>(i)].size());
    // A cache takes memory by the length limit, which may be far above a short source's length.
    return slots * std::max(tokens, config.target_limit(tokens, model.config().max_length) / std::int64_t{8});
  });
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
