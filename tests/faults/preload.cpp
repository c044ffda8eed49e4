/// A library to start a program with (LD_PRELOAD): it numbers what the program and its children do to the files of one
/// folder and lets one of these calls fail, or ends the process there. It makes the system's calls itself, without libc's
/// functions of the same names. See faults.h for how tests use it.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

/// What all processes share, in a file.
struct Shared {
  std::atomic<long> calls;
  std::atomic<bool> full;  ///< whether the disk is, from some call on
};

Shared* shared = nullptr;
const char* folder = nullptr;
int record = -1;         ///< a line a call: number, name, path; 0 as its number: left open at the end
long chosen = 0;         ///< number of the call
bool inherited[1024];    ///< descriptors that the process began with
const char* fault = "";  ///< what becomes of it

enum class Verdict { pass, fail, half };

/// What a descriptor is open for, if it is a file; errno stays.
bool find_path(int descriptor, char (&path)[4096]) {
  const int before = errno;
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  errno = before;
  if (length <= 0) return false;
  path[length] = '\0';
  return true;
}

int error_named(const char* name) {
  constexpr struct {
    const char* name;
    int number;
  } errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EACCES", EACCES}, {"EROFS", EROFS},
                {"EDQUOT", EDQUOT}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}};
  for (const auto& error : errors)
    if (std::strcmp(name, error.name) == 0) return error.number;
  return 0;
}

__attribute__((constructor)) void begin() {
  const char* state = std::getenv("POLYHEAD_FAULTS");
  if (state == nullptr) return;
  folder = std::getenv("POLYHEAD_FAULTS_IN");
  char path[4096];
  for (int file = 0; file < 1024; ++file) inherited[file] = find_path(file, path);
  if (const char* call = std::getenv("POLYHEAD_FAULTS_CALL")) chosen = std::atol(call);
  if (const char* what = std::getenv("POLYHEAD_FAULTS_WHAT")) fault = what;
  record =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, state, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  char counter[4096];
  std::snprintf(counter, sizeof counter, "%s.count", state);
  const int file =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, counter, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (folder == nullptr || record < 0 || file < 0 || syscall(SYS_ftruncate, file, sizeof(Shared)) != 0)
    abort();
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (memory == MAP_FAILED) abort();
  shared = static_cast<Shared*>(memory);
}

/// Whether `path` is the folder or below it.
bool is_inside(const char* path) {
  const std::size_t length = std::strlen(folder);
  return std::strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

void write_record(long number, const char* call, const char* path) {
  char line[4352];
  const int length = std::snprintf(line, sizeof line, "%ld %s %s\n", number, call, path);
  syscall(SYS_write, record, line, static_cast<std::size_t>(length));
}

/// Counts a call, records it, and says what becomes of it; errno is set where it fails. `takes_room`: it needs some on the disk.
Verdict judge(const char* call, const char* path, bool takes_room) {
  if (shared == nullptr || !is_inside(path)) return Verdict::pass;
  const long number = ++shared->calls;
  write_record(number, call, path);
  if (shared->full && takes_room) {
    errno = ENOSPC;
    return Verdict::fail;
  }
  if (number != chosen) return Verdict::pass;
  if (std::strcmp(fault, "kill") == 0) syscall(SYS_kill, getpid(), SIGKILL);
  const bool is_write = std::strcmp(call, "write") == 0;
  if (std::strcmp(fault, "full") == 0) {
    shared->full = true;
    errno = ENOSPC;
    return is_write ? Verdict::half : Verdict::fail;
  }
  if (std::strcmp(fault, "short") == 0 || std::strcmp(fault, "torn") == 0)
    return is_write ? Verdict::half : Verdict::pass;
  errno = error_named(fault);
  return errno == 0 ? Verdict::pass : Verdict::fail;
}

Verdict judge(const char* call, int descriptor, bool takes_room) {
  if (shared == nullptr) return Verdict::pass;
  char path[4096];
  return find_path(descriptor, path) ? judge(call, path, takes_room) : Verdict::pass;
}

/// Files of the folder that a process leaves open are recorded as calls of number 0.
__attribute__((destructor)) void end() {
  if (shared == nullptr) return;
  char path[4096];
  for (int file = 0; file < 1024; ++file)
    if (!inherited[file] && find_path(file, path) && is_inside(path)) write_record(0, "open", path);
}

template <class... Arguments>
long forward(const char* call, const char* path, bool takes_room, long number, Arguments... arguments) {
  return judge(call, path, takes_room) == Verdict::fail ? -1 : syscall(number, arguments...);
}

/// Reading a checkpoint counts: what cannot be read may not get lost.
bool is_checkpoint(const char* path) {
  const std::size_t length = std::strlen(path);
  return length >= 3 && std::strcmp(path + length - 3, ".h5") == 0;
}

/// Other opens to read are passed on uncounted: nothing can get lost by them. Those of folders come before something that can.
int open_file(const char* path, int flags, mode_t mode) {
  const bool counts = (flags & O_ACCMODE) != O_RDONLY || (flags & O_DIRECTORY) != 0 || is_checkpoint(path);
  if (counts && judge("open", path, (flags & O_CREAT) != 0) == Verdict::fail) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, std::size_t count) {
  const Verdict verdict = judge("write", file, true);
  if (verdict == Verdict::fail) return -1;
  const ssize_t written = syscall(SYS_write, file, bytes, verdict == Verdict::half ? (count + 1) / 2 : count);
  if (verdict == Verdict::half && std::strcmp(fault, "torn") == 0) syscall(SYS_kill, getpid(), SIGKILL);
  return written;
}

ssize_t read(int file, void* bytes, std::size_t count) {
  char path[4096];
  if (shared != nullptr && find_path(file, path) && is_checkpoint(path) &&
      judge("read", path, false) == Verdict::fail)
    return -1;
  return syscall(SYS_read, file, bytes, count);
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_file(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_file(path, flags, mode);
}

/// The descriptor is gone even where the system says that closing failed.
int close(int file) {
  const int flags = shared == nullptr ? O_RDONLY : static_cast<int>(syscall(SYS_fcntl, file, F_GETFL));
  const bool fails =
      flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && judge("close", file, false) == Verdict::fail;
  const int error = errno;
  const int closed = static_cast<int>(syscall(SYS_close, file));
  if (!fails) return closed;
  errno = error;
  return -1;
}

int fsync(int file) {
  return judge("fsync", file, true) == Verdict::fail ? -1 : static_cast<int>(syscall(SYS_fsync, file));
}

int ftruncate(int file, off_t size) noexcept {
  return judge("ftruncate", file, false) == Verdict::fail
             ? -1
             : static_cast<int>(syscall(SYS_ftruncate, file, size));
}

int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(forward("rename", to, false, SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  return static_cast<int>(
      forward("rename", to, false, SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int rmdir(const char* path) noexcept {
  return static_cast<int>(forward("remove", path, false, SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}

int unlink(const char* path) noexcept {
  return static_cast<int>(forward("unlink", path, false, SYS_unlinkat, AT_FDCWD, path, 0));
}

int remove(const char* path) noexcept {
  if (judge("remove", path, false) == Verdict::fail) return -1;
  if (syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0) return 0;
  return errno == EISDIR || errno == EPERM
             ? static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR))
             : -1;
}

int mkdir(const char* path, mode_t mode) noexcept {
  return static_cast<int>(forward("mkdir", path, true, SYS_mkdirat, AT_FDCWD, path, mode));
}

}  // extern "C"
