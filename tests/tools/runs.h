#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the tests of the program find in a run folder.
namespace polyhead::testing {

std::string checkpoint(const std::string& run, std::int64_t step);
/// -1 where there are none.
std::int64_t newest_step(const std::string& run);
/// That parameters and moments of two checkpoints are the same, bit for bit.
void expect_equal_arrays(const std::string& first_path, const std::string& second_path);
/// Also the state of the trainer, but for the time that it took.
void expect_equal(const std::string& first_path, const std::string& second_path);
/// The losses of the log's updates, by their place in it; every step must be there once.
std::vector<double> losses(const std::string& run);

}  // namespace polyhead::testing
