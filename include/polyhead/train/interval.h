#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "polyhead/config/codec.h"
#include "polyhead/config/constraint.h"

namespace polyhead::train {

/// How often something happens: every so many updates, or at the end of every epoch.
struct Interval {
  std::int64_t steps = 0;  ///< 0: every epoch
  static Interval epoch() { return {}; }
  bool due(std::int64_t step, bool epoch_ended) const { return steps == 0 ? epoch_ended : step % steps == 0; }
  bool operator==(const Interval&) const = default;
};

/// Number of shards of a batch.
struct Lanes {
  std::int64_t count = 0;  ///< 0: auto
  int of(std::int64_t batch_tokens) const {
    return static_cast<int>(count > 0 ? count : std::clamp<std::int64_t>(batch_tokens / 512, 2, 8));
  }
  bool operator==(const Lanes&) const = default;
};

}  // namespace polyhead::train

namespace polyhead::config {

/// A positive integer up to a limit, or one word that stands for 0.
struct IntegerOrWord {
  std::string word;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();

  std::string type() const {
    const bool limited = most < std::numeric_limits<std::int64_t>::max();
    return (limited ? "an integer of 1 to " + std::to_string(most) : "an integer of at least 1") + ", or " +
           word;
  }
  std::int64_t read(const Node& node) const {
    if (node.kind == Node::Kind::scalar && node.text == word) return 0;
    std::int64_t value = 0;
    try {
      value = Codec<std::int64_t>::read(node);
    } catch (const Unexpected&) {  // says "an integer" only
    }
    if (value < 1 || value > most) unexpected(node, type());
    return value;
  }
  std::string text(std::int64_t value) const { return value == 0 ? word : std::to_string(value); }
};

template <>
struct Codec<train::Interval> {
  static IntegerOrWord form() { return {.word = "epoch"}; }
  static std::string type() { return form().type(); }
  static train::Interval read(const Node& node) { return {form().read(node)}; }
  static std::string text(const train::Interval& value) { return form().text(value.steps); }
};

template <>
struct Codec<train::Lanes> {
  static IntegerOrWord form() { return {.word = "auto", .most = 1024}; }
  static std::string type() { return form().type(); }
  static train::Lanes read(const Node& node) { return {form().read(node)}; }
  static std::string text(const train::Lanes& value) { return form().text(value.count); }
};

}  // namespace polyhead::config
