#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

/// This program run by itself.
namespace polyhead::tools {

/// Another process of this program, which ends when this one does, however this one ends. To be made by the main thread:
/// the system counts the end of the thread that started a process as the end of its parent.
class Child {
 public:
  /// Starts it with `arguments`; stdout replaces the file `out` and stderr is appended to `err`. It is in a process group of
  /// its own, so that a terminal's Ctrl-C reaches only this process, and no signal is blocked. Throws FileError when it
  /// cannot be started.
  Child(const std::vector<std::string>& arguments, const std::string& out, const std::string& err);
  /// Kills it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void signal(int number) const;
  /// Its exit status, or 128 + the signal that ended it; null while it runs.
  std::optional<int> status();

 private:
  pid_t id_ = -1;
  std::optional<int> status_;
};

/// What the program does first when a Child's constructor started it: asks the system to be killed when its parent ends.
void end_with_parent();

}  // namespace polyhead::tools
