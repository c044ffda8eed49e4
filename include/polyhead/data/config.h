#pragma once

#include <string>

#include "polyhead/config/constraint.h"

namespace polyhead::config {
class Problems;
}

namespace polyhead::data {

/// Two parallel text files, plain or gzip; line i of one translates line i of the other.
struct FilePair {
  std::string source;
  std::string target;
  bool operator==(const FilePair&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("source", source, "text file, plain or gzip, a sentence a line");
    v("target", target, "its translation, line by line");
  }
  /// Both files are given, or neither is.
  void validate(config::Problems& problems) const;
};

/// The names of tasks(), separated by commas.
std::string task_names();

/// The `data` section of a configuration. Relative paths are relative to the current directory.
struct DataConfig {
  std::string task = "files";
  FilePair train, valid, test;
  bool lowercase = false;
  int max_length = 250;
  int train_size = 40000;
  int valid_size = 500;
  int test_size = 1000;
  bool operator==(const DataConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("task", task, "files, or a built-in toy task: " + task_names());
    v("train", train, "training files");
    v("valid", valid, "validation files");
    v("test", test, "test files");
    v("lowercase", lowercase, "lower-case all text before tokenizing");
    v("max_length", max_length,
      "training pairs with a side of more pieces are dropped, longer input is cropped", config::at_least(1));
    v("train_size", train_size, "sentence pairs of a toy task's training split", config::between(1, 1 << 24));
    v("valid_size", valid_size, "sentence pairs of a toy task's validation split",
      config::between(1, 1 << 24));
    v("test_size", test_size, "sentence pairs of a toy task's test split", config::between(1, 1 << 24));
  }
  /// `task` is "files" or one of tasks().
  void validate(config::Problems& problems) const;
};

}  // namespace polyhead::data
