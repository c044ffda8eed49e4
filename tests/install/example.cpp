// A program outside the project: trains a tiny model to copy words, then translates with it.
#include <cstdio>
#include <filesystem>

#include "polyhead/config/yaml.h"
#include "polyhead/train/model_file.h"
#include "polyhead/train/trainer.h"
#include "polyhead/train/validation.h"

int main() {
  using namespace polyhead;
  const auto config = config::parse<train::Config>(R"(
name: example
data: {task: copy, train_size: 200, valid_size: 10, test_size: 10}
tokenizer: {kind: word}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, heads: 2, d_ff: 32}
training: {batch_tokens: 256, max_steps: 5}
decoding: {max_length_extra: 5}
)",
                                                   "example");
  const std::string folder = (std::filesystem::temp_directory_path() / "polyhead_example").string();
  std::filesystem::remove_all(folder);
  train::Observer quiet;
  const train::TrainResult result = train::train(config, {.folder = folder, .threads = 2}, quiet);
  const train::LoadedModel loaded = train::load_model(folder);
  const std::vector<std::string> lines{"a b c", ""};
  const auto translations = train::translate_lines(*loaded.model, loaded.pipeline, loaded.config,
                                                   std::vector<std::string>{"a b c", ""}, 1)
                                .lines(loaded.pipeline);
  std::filesystem::remove_all(folder);
  const bool good =
      result.step == 5 && loaded.step == 5 && translations.size() == 2 && translations[1].empty();
  std::puts(good ? "polyhead works from outside" : "polyhead does not work from outside");
  return good ? 0 : 1;
}
