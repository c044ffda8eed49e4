#include "polyhead/core/profile.h"

#include <algorithm>

namespace polyhead {

const char* name(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::update:
      break;
  }
  return "update";
}

void Profile::add(std::string_view op, Pass pass, std::int64_t calls, double seconds) {
  auto row =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.pass == pass && r.op == op; });
  if (row == rows_.end()) row = rows_.insert(rows_.end(), {op, pass});
  row->calls += calls;
  row->seconds += seconds;
}

void Profile::add(const Profile& other) {
  for (const Row& row : other.rows_) add(row.op, row.pass, row.calls, row.seconds);
}

}  // namespace polyhead
