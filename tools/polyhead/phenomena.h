#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "polyhead/data/pair.h"
#include "polyhead/train/config.h"
#include "polyhead/train/probing.h"

/// The splits of the toy language as the commands read and report them.
namespace polyhead::tools {

/// A split's name and its pairs.
struct AnnotatedSplit {
  std::string name;
  std::vector<data::Pair> pairs;
};

/// The splits that a name stands for: "all" for test, then each phenomenon's, then length, depth, composition and
/// attractors; any other for itself. Throws Error that lists the names when there is no such split.
std::vector<std::string> grammar_splits(const std::string& name);

/// The first `limit` pairs of splits of the configuration's toy language; 0: as many as there usually are (of train,
/// valid and test as configured). A phenomenon's split has the probes of that phenomenon alone.
std::vector<AnnotatedSplit> annotated_splits(const std::vector<std::string>& names,
                                             const train::Config& config, int limit, int threads);

/// {"phenomenon": ..., "slot": ..., ...}
nlohmann::ordered_json probe_json(const data::Probe& probe);

/// {"all": {...}, "phenomena": {"articles": {...}, ...}}
nlohmann::ordered_json probing_json(const train::ProbingReport& report);
/// A table for people, with a heading: a row for all of a split and one for each phenomenon; of a phenomenon's split
/// that phenomenon's alone.
std::string probing_table(const std::vector<std::pair<std::string, train::ProbingReport>>& splits);

}  // namespace polyhead::tools
