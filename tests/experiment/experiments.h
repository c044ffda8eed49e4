#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "polyhead/experiment/config.h"

namespace polyhead::testing {

/// A folder that is removed with it.
struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "polyhead-experiment-XXXXXX").string();
  Folder() { ::mkdtemp(path.data()); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name) << text;
    return path + "/" + name;
  }
};

inline const std::string small_base = R"(  data: {task: copy, train_size: 200, valid_size: 10, test_size: 20}
  tokenizer: {kind: word}
  model: {encoder_layers: 2, decoder_layers: 1, d_model: 32, heads: 1, d_ff: 128, max_length: 40}
  training: {batch_tokens: 128, max_steps: 12, learning_rate: 0.02, warmup_steps: 4}
)";

/// An experiment on small_base with `rest` of its file.
inline experiment::Experiment small_experiment(const std::string& rest,
                                               const std::vector<std::string>& overrides = {}) {
  const Folder folder;
  return experiment::load_experiment(folder.write("e.yaml", "base:\n" + small_base + rest), overrides, "");
}

/// What a call throws.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace polyhead::testing
