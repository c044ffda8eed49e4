#include "polyhead/config/problems.h"

namespace polyhead::config {

void Problems::report(std::string_view key, const std::string& message) {
  const Node* node = &node_;
  for (std::string_view rest = key; !rest.empty();) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const Node* next = node->find(rest.substr(0, dot));
    if (next == nullptr) break;
    node = next;
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  found_.push_back({node->place.order,
                    concat(node->place.text, ": ", path_, path_.empty() ? "" : ".", key, ": ", message)});
}

}  // namespace polyhead::config
