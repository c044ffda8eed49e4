#pragma once

#include <algorithm>
#include <cstdint>
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

/// A positive integer, or one word that stands for 0.
struct IntegerOrWord {
  static std::string type(const std::string& word) { return "an integer of at least 1, or " + word; }
  static std::int64_t read(const Node& node, const std::string& word) {
    if (node.kind == Node::Kind::scalar && node.text == word) return 0;
    std::int64_t value = 0;
    try {
      value = Codec<std::int64_t>::read(node);
    } catch (const Unexpected&) {  // says "an integer" only
    }
    if (value < 1) unexpected(node, type(word));
    return value;
  }
  static std::string text(std::int64_t value, const std::string& word) {
    return value == 0 ? word : std::to_string(value);
  }
};

template <>
struct Codec<train::Interval> {
  static std::string type() { return IntegerOrWord::type("epoch"); }
  static train::Interval read(const Node& node) { return {IntegerOrWord::read(node, "epoch")}; }
  static std::string text(const train::Interval& value) { return IntegerOrWord::text(value.steps, "epoch"); }
};

template <>
struct Codec<train::Lanes> {
  static std::string type() { return IntegerOrWord::type("auto"); }
  static train::Lanes read(const Node& node) { return {IntegerOrWord::read(node, "auto")}; }
  static std::string text(const train::Lanes& value) { return IntegerOrWord::text(value.count, "auto"); }
};

}  // namespace polyhead::config
