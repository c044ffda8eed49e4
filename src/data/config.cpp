#include "polyhead/data/config.h"

#include <algorithm>

#include "polyhead/config/problems.h"
#include "polyhead/data/tasks.h"

namespace polyhead::data {

void FilePair::validate(config::Problems& problems) const {
  if (source.empty() && !target.empty()) problems.add("source", "missing beside target ", target);
  if (target.empty() && !source.empty()) problems.add("target", "missing beside source ", source);
}

std::string task_names() {
  std::string names;
  for (const Task& row : tasks()) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

void DataConfig::validate(config::Problems& problems) const {
  const bool known = task == "files" || std::any_of(tasks().begin(), tasks().end(),
                                                    [&](const Task& row) { return row.name == task; });
  if (!known) problems.add("task", '"', task, "\", expected one of files, ", task_names());
}

}  // namespace polyhead::data
