#include "polyhead/nn/head_counts.h"

#include <algorithm>

#include "polyhead/core/error.h"

namespace polyhead {

namespace nn {
std::ostream& operator<<(std::ostream& out, const HeadCounts& heads) {
  return out << config::Codec<HeadCounts>::text(heads);
}
}  // namespace nn

namespace config {

using nn::HeadCounts;

HeadCounts Codec<HeadCounts>::read(const Node& node) {
  if (node.kind != Node::Kind::mapping) {
    if (node.kind != Node::Kind::scalar) unexpected(node, type());
    return Codec<int>::read(node);
  }
  HeadCounts::Lists lists;
  for (const nn::AttentionKind kind : nn::attention_kinds) {
    const Node* list = node.find(name(kind));
    if (!list || node.members.size() != lists.size()) unexpected(node, type());
    try {
      lists[static_cast<std::size_t>(kind)] = Codec<std::vector<int>>::read(*list);
    } catch (Unexpected& problem) {
      problem.index = "." + std::string(name(kind)) + problem.index;
      throw;
    }
  }
  return lists;
}

std::string Codec<HeadCounts>::text(const HeadCounts& heads) {
  if (!heads.lists()) return Codec<int>::text(heads);
  std::string text = "{";
  for (const nn::AttentionKind kind : nn::attention_kinds)
    text += concat(kind == nn::AttentionKind::encoder ? "" : ", ", name(kind), ": ",
                   Codec<std::vector<int>>::text((*heads.lists())[static_cast<std::size_t>(kind)]));
  return text + "}";
}

}  // namespace config
}  // namespace polyhead
