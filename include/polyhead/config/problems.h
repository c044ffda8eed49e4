#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polyhead/config/node.h"
#include "polyhead/core/error.h"

namespace polyhead::config {

struct Problem {
  int order;  ///< see Place
  std::string message;
};

/// Collects what is wrong with a configuration, so that all of it is reported at once.
/// A struct with rules across its fields declares `void validate(config::Problems& problems) const`, run when
/// each field alone is fine, and says
///
///     problems.add("heads", heads, " does not divide d_model ", d_model);
///     // file.yaml:12: model.heads: 6 does not divide d_model 128
class Problems {
 public:
  /// Of the section `node` at key path `path`; `found` receives them and, as `node`, must outlive this.
  Problems(std::vector<Problem>& found, const Node& node, std::string path)
      : found_(found), node_(node), path_(std::move(path)) {}

  /// Reports about `key`, dotted where it is in a nested struct, at the line that sets it (or its section).
  template <class... Parts>
  void add(std::string_view key, const Parts&... parts) {
    report(key, concat(parts...));
  }

 private:
  void report(std::string_view key, const std::string& message);

  std::vector<Problem>& found_;
  const Node& node_;
  std::string path_;
};

}  // namespace polyhead::config
