#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "polyhead/config/fields.h"
#include "polyhead/data/config.h"
#include "polyhead/decode/config.h"
#include "polyhead/nn/config.h"
#include "polyhead/text/config.h"
#include "polyhead/train/interval.h"
#include "polyhead/train/optimizer.h"
#include "polyhead/train/schedule.h"

namespace polyhead::train {

/// What operands of matrix products are rounded to in training.
enum class Precision { f32, bf16 };
inline config::EnumNames<Precision> enum_names(Precision) {
  return {{Precision::f32, "f32"}, {Precision::bf16, "bf16"}};
}

/// What validation measures, and best_metric chooses by.
enum class Metric { loss, perplexity, token_accuracy, bleu, chrf, exact_match };
inline config::EnumNames<Metric> enum_names(Metric) {
  return {{Metric::loss, "loss"},
          {Metric::perplexity, "perplexity"},
          {Metric::token_accuracy, "token_accuracy"},
          {Metric::bleu, "bleu"},
          {Metric::chrf, "chrf"},
          {Metric::exact_match, "exact_match"}};
}
/// Whether a metric needs translations, not just the loss.
inline bool needs_decoding(Metric m) { return m >= Metric::bleu; }
inline bool lower_is_better(Metric m) { return m == Metric::loss || m == Metric::perplexity; }

/// Section `training.head_gates`.
struct HeadGatesConfig {
  double lambda = 0;
  double initial = 2;
  bool operator==(const HeadGatesConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    using namespace config;
    v("lambda", lambda,
      "learn which heads to keep: weight, beside the loss per target token, of the heads expected to stay "
      "open; 0: no "
      "gates",
      at_least(0));
    v("initial", initial, "log alpha of every gate at the start; 2 is a gate of 0.96");
  }
};

/// Section `training.disagreement`.
struct DisagreementConfig {
  double subspace = 0;
  double position = 0;
  double output = 0;
  std::vector<nn::AttentionKind> attention{nn::attention_kinds.begin(), nn::attention_kinds.end()};
  bool operator==(const DisagreementConfig&) const = default;

  std::array<double, 3> weights() const { return {subspace, position, output}; }

  template <class Visitor>
  void fields(Visitor& v) {
    using namespace config;
    v("subspace", subspace,
      "weight, beside the loss per target token, of the mean cosine of two heads' values; 0: none",
      at_least(0));
    v("position", position, "weight of the overlap of two heads' attention weights; 0: none", at_least(0));
    v("output", output, "weight of the mean cosine of two heads' outputs; 0: none", at_least(0));
    v("attention", attention, "attentions whose heads are asked to disagree", not_empty());
  }
};

/// Section `training`.
struct TrainingConfig {
  int batch_tokens = 4096;
  int accumulate = 1;
  Lanes lanes;
  Precision precision = Precision::f32;
  std::optional<std::int64_t> max_steps;
  std::optional<std::int64_t> max_epochs;
  std::optional<double> max_minutes;
  ScheduleConfig schedule;
  AdamConfig adam;
  double label_smoothing = 0.1;
  double ema_decay = 0;
  Interval validate_every = Interval::epoch();
  Interval checkpoint_every = Interval::epoch();
  std::optional<std::int64_t> diagnostics_every;
  int keep_last = 3;
  int keep_best = 1;
  Metric best_metric = Metric::loss;
  std::vector<Metric> validation_metrics;
  int patience = 0;
  std::optional<std::string> initial_checkpoint;
  HeadGatesConfig head_gates;
  DisagreementConfig disagreement;
  bool operator==(const TrainingConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    using namespace config;
    v("batch_tokens", batch_tokens, "most target tokens of a batch, end tokens included",
      between(1, 1 << 24));
    v("accumulate", accumulate, "batches of an update", between(1, 1024));
    v("lanes", lanes,
      "shards that a batch is cut into: how many threads can share it; auto: batch_tokens / 512 within 2 to "
      "8");
    v("precision", precision,
      "of the operands of matrix products in training; bf16 is mixed precision, where sums and all else stay "
      "f32");
    v("max_steps", max_steps, "updates after which training ends; null: no limit", at_least(0));
    v("max_epochs", max_epochs, "passes over the data after which training ends; null: no limit",
      at_least(0));
    v("max_minutes", max_minutes,
      "minutes of training, over all resumptions, after which it ends; null: no limit", above(0));
    schedule.fields(v);
    adam.fields(v);
    v("label_smoothing", label_smoothing, "probability spread over the vocabulary (as PyTorch's)",
      at_least(0), below(1));
    v("ema_decay", ema_decay,
      "of an exponential moving average of the weights, used for validation and decoding; 0: none. At update "
      "t it "
      "is at most (1 + t) / (10 + t), as in TensorFlow and Marian",
      at_least(0), below(1));
    v("validate_every", validate_every, "updates between validations, or epoch");
    v("checkpoint_every", checkpoint_every, "updates between checkpoints, or epoch");
    v("diagnostics_every", diagnostics_every,
      "updates between diagnostics of every head in train.jsonl; null: none", at_least(1));
    v("keep_last", keep_last, "newest checkpoints of checkpoint_every to keep, besides the very last",
      at_least(1));
    v("keep_best", keep_best, "best checkpoints by best_metric to keep besides", at_least(1));
    v("best_metric", best_metric, "validation figure that says which checkpoint is best");
    v("validation_metrics", validation_metrics,
      "figures to validate besides loss, perplexity and token accuracy");
    v("patience", patience, "validations without a better best_metric after which training ends; 0: never",
      at_least(0));
    v("initial_checkpoint", initial_checkpoint,
      "run or checkpoint whose weights and tokenizers training starts from");
    v("head_gates", head_gates, "learned gates on attention heads");
    v("disagreement", disagreement, "terms of the loss that make heads differ");
  }

  void validate(config::Problems& problems) const {
    schedule.validate(problems);
    if (!max_steps && !max_epochs && !max_minutes && patience == 0)
      problems.add("max_steps",
                   "no end to training: expected max_steps, max_epochs, max_minutes or patience");
    if (shards() > most_shards)
      problems.add("accumulate", accumulate, " times ", lanes.of(batch_tokens), " lanes are ", shards(),
                   " shards of an update, expected at most ", most_shards);
  }

  static constexpr int most_shards = 4096;
  /// Shards of an update.
  int shards() const { return lanes.of(batch_tokens) * accumulate; }
  /// Most target tokens of a shard, as far as sentences end there.
  int shard_tokens() const { return std::max(1, batch_tokens / lanes.of(batch_tokens)); }
  /// Metrics of a validation that need translations.
  std::vector<Metric> decoded_metrics() const {
    std::vector<Metric> metrics = validation_metrics;
    metrics.push_back(best_metric);
    std::sort(metrics.begin(), metrics.end());
    metrics.erase(std::unique(metrics.begin(), metrics.end()), metrics.end());
    std::erase_if(metrics, [](Metric m) { return !needs_decoding(m); });
    return metrics;
  }
};

/// What a run does when a checkpoint or a line of its log cannot be written.
enum class OnError { stop, go_on };
inline config::EnumNames<OnError> enum_names(OnError) {
  return {{OnError::stop, "stop"}, {OnError::go_on, "continue"}};
}

/// Section `checkpoint`.
struct CheckpointConfig {
  OnError on_error = OnError::stop;
  bool operator==(const CheckpointConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("on_error", on_error,
      "when a checkpoint or train.jsonl cannot be written: stop with status 4, or continue with a warning; "
      "never of a run's last checkpoint");
  }
};

/// Section `evaluation`: how `polyhead evaluate` and validation compute metrics of text.
struct EvaluationConfig {
  std::string tokenize = "13a";
  bool lowercase = false;
  bool operator==(const EvaluationConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("tokenize", tokenize, "tokenizer of BLEU: 13a, none or char");
    v("lowercase", lowercase, "whether metrics ignore case");
  }
  void validate(config::Problems& problems) const {
    if (tokenize != "13a" && tokenize != "none" && tokenize != "char")
      problems.add("tokenize", '"', tokenize, "\", expected one of 13a, none, char");
  }
};

/// A whole configuration.
struct Config {
  std::string name = "run";
  std::uint64_t seed = 1;
  data::DataConfig data;
  text::TokenizerConfig tokenizer;
  nn::ModelConfig model;
  TrainingConfig training;
  CheckpointConfig checkpoint;
  decode::DecodingConfig decoding;
  EvaluationConfig evaluation;
  bool operator==(const Config&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "of the run: its folder is runs/NAME where --out does not say otherwise",
      config::not_empty());
    v("seed", seed, "of every random number of the run");
    v("data", data, "what to train and test on");
    v("tokenizer", tokenizer, "how text is cut into pieces");
    v("model", model, "the Transformer");
    v("training", training, "how it is trained");
    v("checkpoint", checkpoint, "what becomes of checkpoints that cannot be written");
    v("decoding", decoding, "how it translates");
    v("evaluation", evaluation, "how translations are judged");
  }
  void validate(config::Problems& problems) const;
  /// Most pieces of a sentence, end token not counted: what the model has places for, and `data.max_length`.
  int max_pieces() const { return std::min(data.max_length, model.max_length - 1); }
};

/// Whether a setting may differ when a run goes on: limits and intervals.
bool may_change_on_resume(std::string_view key);

}  // namespace polyhead::train
