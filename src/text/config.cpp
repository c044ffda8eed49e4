#include "polyhead/text/config.h"

#include "polyhead/config/problems.h"
#include "polyhead/text/tokenizer.h"

namespace polyhead::text {

void TokenizerConfig::validate(config::Problems& problems) const {
  std::string names;
  bool known = false;
  for (const TokenizerKind& row : tokenizer_kinds()) {
    names.append(names.empty() ? "" : ", ").append(row.name);
    known = known || row.name == kind;
  }
  if (!known) problems.add("kind", '"', kind, "\", expected one of ", names);
  const auto model_rule = [&](std::string_view key, const std::string& path, bool for_shared) {
    if (path.empty()) return;
    if (kind != "sentencepiece") problems.add(key, "needs kind sentencepiece, not ", kind);
    if (shared != for_shared) problems.add(key, "needs shared: ", for_shared ? "true" : "false");
  };
  model_rule("model", model, true);
  model_rule("source_model", source_model, false);
  model_rule("target_model", target_model, false);
}

}  // namespace polyhead::text
