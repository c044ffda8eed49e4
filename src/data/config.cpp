#include "polyhead/data/config.h"

#include "polyhead/config/problems.h"
#include "polyhead/data/tasks.h"

namespace polyhead::data {

void FilePair::validate(config::Problems& problems) const {
  if (source.empty() && !target.empty()) problems.add("source", "missing beside target ", target);
  if (target.empty() && !source.empty()) problems.add("target", "missing beside source ", source);
}

void DataConfig::validate(config::Problems& problems) const {
  std::string names = "files";
  bool known = task == names;
  for (const Task& row : tasks()) {
    names.append(", ").append(row.name);
    known = known || row.name == task;
  }
  if (!known) problems.add("task", '"', task, "\", expected one of ", names);
}

}  // namespace polyhead::data
