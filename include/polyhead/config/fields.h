#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "polyhead/config/codec.h"
#include "polyhead/config/constraint.h"
#include "polyhead/config/problems.h"

/// One list of fields per configuration struct. A struct names its fields once,
///
///     struct ScheduleConfig {
///       int warmup_steps = 4000;
///       bool operator==(const ScheduleConfig&) const = default;
///
///       template <class Visitor>
///       void fields(Visitor& v) {
///         v("warmup_steps", warmup_steps, "steps of linear warm-up", config::at_least(0));
///       }
///     };
///
/// and parsing, validation, dumping and documentation (config/yaml.h) are made of that list.
/// Field types: bool, int, std::int64_t, std::uint64_t, double, std::string, enums with enum_names,
/// std::vector and std::optional of these, any type with a Codec, and structs with fields of their own
/// (nested mappings). Rules across fields go into `void validate(config::Problems&) const`.
namespace polyhead::config {

/// A field of some struct, bound to that struct's member: what every use of the list of fields works on.
/// A nested struct is a field with fields of its own, and so is the whole configuration (with an empty key).
struct Field {
  std::string key, doc;

  // Of a value:
  std::string type;
  std::vector<Constraint> constraints;
  std::function<void(const Node&)> read;  ///< into the member; throws Unexpected
  std::function<std::string()> text;      ///< the member's value in YAML's flow form
  std::function<bool(const Constraint&)> satisfies;

  // Of a struct:
  bool is_struct = false;
  std::vector<Field> fields;
  std::function<void(Problems&)> validate;  ///< empty where the struct has no such rules
};

struct AnyVisitor {
  template <class... Arguments>
  void operator()(const Arguments&...) {}
};
template <class T>
concept HasFields = requires(T value, AnyVisitor visitor) {
  value.fields(visitor);
};

template <HasFields T>
Field describe(T& value);

/// The visitor that turns a struct's list into Fields.
class Describer {
 public:
  explicit Describer(std::vector<Field>& fields) : fields_(fields) {}

  template <class T, std::same_as<Constraint>... Constraints>
  void operator()(std::string key, T& member, std::string doc, const Constraints&... constraints) {
    Field field;
    if constexpr (HasFields<T>) {
      static_assert(sizeof...(constraints) == 0, "constraints belong on the fields of a nested struct");
      field = describe(member);
    } else {
      static_assert(HasCodec<T>, "not a field type: specialise Codec<T>, or give it enum_names or fields");
      field.type = Codec<T>::type();
      field.constraints = {constraints...};
      field.read = [&member](const Node& node) { member = Codec<T>::read(node); };
      field.text = [&member] { return Codec<T>::text(member); };
      if constexpr (sizeof...(constraints) > 0)
        field.satisfies = [&member](const Constraint& c) { return config::satisfies(member, c); };
    }
    field.key = std::move(key);
    field.doc = std::move(doc);
    fields_.push_back(std::move(field));
  }

 private:
  std::vector<Field>& fields_;
};

/// The fields of `value`, which must outlive them.
template <HasFields T>
Field describe(T& value) {
  Field result;
  result.is_struct = true;
  Describer describer(result.fields);
  value.fields(describer);
  if constexpr (requires(const T& t, Problems& problems) { t.validate(problems); })
    result.validate = [&value](Problems& problems) { std::as_const(value).validate(problems); };
  return result;
}

}  // namespace polyhead::config
