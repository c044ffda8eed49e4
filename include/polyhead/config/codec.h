#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "polyhead/config/node.h"

namespace polyhead::config {

/// How a field of type T reads and writes YAML. Specialise it for a type of your own with
///
///     static std::string type();              // what a message expects: "an integer or a list"
///     static T read(const Node& node);        // throws Unexpected (see unexpected())
///     static std::string text(const T& value);  // in YAML's flow form; read(text(x)) == x
///
/// and, where constraints apply to the type,
///
///     static bool satisfies(const T& value, const Constraint& constraint);  // see config::satisfies
template <class T>
struct Codec;

/// Names of the values of an enum, found by argument-dependent lookup beside it:
///
///     enum class Norm { pre, post };
///     inline config::EnumNames<Norm> enum_names(Norm) { return {{Norm::pre, "pre"}, {Norm::post, "post"}}; }
template <class E>
using EnumNames = std::vector<std::pair<E, std::string>>;

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  { enum_names(value) } -> std::same_as<EnumNames<E>>;
};

template <class T>
concept HasCodec = requires(const Node& node, const T& value) {
  { Codec<T>::read(node) } -> std::same_as<T>;
  { Codec<T>::text(value) } -> std::same_as<std::string>;
  { Codec<T>::type() } -> std::same_as<std::string>;
};

/// true or false; YAML 1.1's yes, on and the like are refused.
template <>
struct Codec<bool> {
  static std::string type() { return "true or false"; }
  static bool read(const Node& node);
  static std::string text(bool value) { return value ? "true" : "false"; }
};

/// Decimal digits only: YAML versions differ on what 010 and 0x10 mean.
template <class T>
struct IntegerCodec {
  static std::string type() { return "an integer"; }
  static T read(const Node& node);
  static std::string text(T value) { return std::to_string(value); }
};
template <>
struct Codec<int> : IntegerCodec<int> {};
template <>
struct Codec<std::int64_t> : IntegerCodec<std::int64_t> {};
template <>
struct Codec<std::uint64_t> : IntegerCodec<std::uint64_t> {};

/// A finite number; written in the fewest digits that read back as the same bits.
template <>
struct Codec<double> {
  static std::string type() { return "a number"; }
  static double read(const Node& node);
  static std::string text(double value);
};

template <>
struct Codec<std::string> {
  static std::string type() { return "text"; }
  static std::string read(const Node& node);
  static std::string text(const std::string& value) { return scalar_text(value); }
};

template <NamedEnum E>
struct Codec<E> {
  static std::string type() {
    std::string names;
    for (const auto& [value, name] : enum_names(E{})) (names += names.empty() ? "" : ", ") += name;
    return "one of " + names;
  }
  static E read(const Node& node) {
    if (node.kind == Node::Kind::scalar)
      for (const auto& [value, name] : enum_names(E{}))
        if (name == node.text) return value;
    unexpected(node, type());
  }
  static std::string text(E value) {
    for (const auto& [candidate, name] : enum_names(E{}))
      if (candidate == value) return scalar_text(name);
    return scalar_text(std::to_string(static_cast<std::underlying_type_t<E>>(value)));
  }
};

/// Unset is written `null`.
template <HasCodec T>
struct Codec<std::optional<T>> {
  static std::string type() { return Codec<T>::type() + " or null"; }
  static std::optional<T> read(const Node& node) {
    if (node.kind == Node::Kind::null) return std::nullopt;
    return Codec<T>::read(node);
  }
  static std::string text(const std::optional<T>& value) { return value ? Codec<T>::text(*value) : "null"; }
};

template <HasCodec T>
struct Codec<std::vector<T>> {
  static std::string type() { return "a list, each " + Codec<T>::type(); }
  static std::vector<T> read(const Node& node) {
    if (node.kind != Node::Kind::sequence) unexpected(node, type());
    std::vector<T> values;
    for (std::size_t i = 0; i < node.items.size(); ++i) try {
        values.push_back(Codec<T>::read(node.items[i]));
      } catch (Unexpected& problem) {
        problem.index = "[" + std::to_string(i) + "]" + problem.index;
        throw;
      }
    return values;
  }
  static std::string text(const std::vector<T>& values) {
    std::string result = "[";
    for (std::size_t i = 0; i < values.size(); ++i) (result += i ? ", " : "") += Codec<T>::text(values[i]);
    return result + "]";
  }
};

}  // namespace polyhead::config
