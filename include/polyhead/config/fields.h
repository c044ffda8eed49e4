#pragma once

#include <string>

/// One list of fields per configuration struct. A struct names its fields once,
///
///     struct ScheduleConfig {
///       int warmup_steps = 4000;
///       template <class Visitor> void fields(Visitor& v) {
///         v("warmup_steps", warmup_steps, "steps of linear warm-up", at_least(0));
///       }
///     };
///
/// and parsing, validation, dumping and documentation are visitors of that list (config/yaml.h).
/// Field types: bool, int, std::int64_t, double, std::string, std::vector of these, std::optional of these,
/// enums with a table of names (enum_names), and structs with fields of their own (nested mappings).
namespace polyhead::config {
}  // namespace polyhead::config
