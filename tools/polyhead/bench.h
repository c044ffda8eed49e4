#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "polyhead/core/profile.h"
#include "polyhead/nn/config.h"

/// What the parts of `polyhead bench` share.
namespace polyhead::tools {

using Json = nlohmann::ordered_json;

/// The middle one, or the mean of the middle two; `values` is not empty.
double median(std::vector<double> values);

/// amount / s for each s of `seconds`.
std::vector<double> rates(double amount, const std::vector<double>& seconds);

/// The rows of a profile of `seconds`, the longest first. Shares are of the time of all threads together; what the
/// threads do alone (Pass::update) counts once.
Json profile_rows(const Profile& profile, double seconds, int threads);

/// The best rate of f32 matrix products at the shapes of a model, on many threads at once.
class GemmLimit {
 public:
  GemmLimit(const nn::ModelConfig& config, std::int64_t target_vocabulary, int threads);
  /// Measures each shape once, for at least 50 ms.
  void measure();
  /// Of the shape with the best median over all measurements, in GFLOP/s.
  double gflops() const;

 private:
  struct Shape {
    std::int64_t in, out;
    std::vector<double> gflops;
  };
  std::vector<Shape> shapes_;
  int threads_;
};

/// Writes a report to stdout: as one JSON object, or for people "key  value" lines of its numbers and texts and the
/// table of its "profile" where it has one.
void write_report(const Json& report, bool json);

}  // namespace polyhead::tools
