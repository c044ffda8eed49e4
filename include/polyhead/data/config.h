#pragma once

#include <string>

namespace polyhead::data {

/// Two parallel text files, plain or gzip; line i of one translates line i of the other.
struct FilePair {
  std::string source;
  std::string target;
};

/// The `data` section of a configuration.
struct DataConfig {
  std::string task = "files";
  FilePair train, valid, test;
  bool lowercase = false;
  int max_length = 250;
  int train_size = 40000;
  int valid_size = 500;
  int test_size = 1000;
};

}  // namespace polyhead::data
