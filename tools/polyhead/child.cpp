#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "polyhead/core/error.h"

namespace polyhead::tools {
namespace {

/// Names the process that a Child ends with.
constexpr const char* parent_variable = "POLYHEAD_PARENT";

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment() {
  std::vector<std::string> variables{concat(parent_variable, "=", ::getpid())};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with(concat(parent_variable, "=")))
      variables.emplace_back(*variable);
  return variables;
}

}  // namespace

Child::Child(const std::vector<std::string>& arguments, const std::string& out, const std::string& err) {
  std::vector<std::string> words{"polyhead"}, variables = environment();
  words.insert(words.end(), arguments.begin(), arguments.end());
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // The file that this process runs, even if another has taken its name since.
  const int error = posix_spawn(&id_, "/proc/self/exe", &files, &attributes, pointers_to(words).data(),
                                pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  require<FileError>(error == 0, "cannot start polyhead ", arguments.front(), " with its output in ", out,
                     ": ", std::generic_category().message(error));
}

Child::~Child() {
  if (status_) return;
  ::kill(id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

void Child::signal(int number) const {
  if (!status_) ::kill(id_, number);
}

std::optional<int> Child::status() {
  int raw = 0;
  if (!status_ && ::waitpid(id_, &raw, WNOHANG) == id_)
    status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  return status_;
}

void end_with_parent() {
  const char* parent = std::getenv(parent_variable);
  if (parent == nullptr) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before that; whoever inherited this process is somebody else.
  if (std::to_string(::getppid()) != parent) std::_Exit(128 + SIGKILL);
}

}  // namespace polyhead::tools
