#pragma once

#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <string>
#include <system_error>

/// What the system lets a process do, changed for one thread of a test and for the programs that it starts.
namespace polyhead::testing {

/// Calls `body` where the permissions of files hold even for root.
template <class Body>
void with_permissions(const Body& body) {
  const auto call = [&] {
    constexpr unsigned passing = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
    // From the bounding set as well, else a program that root starts gets them back.
    for (const int capability : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH})
      ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    ::syscall(SYS_capget, &header, sets);
    for (auto* set : {&sets[0].effective, &sets[0].permitted, &sets[0].inheritable}) *set &= ~passing;
    ::syscall(SYS_capset, &header, sets);
    body();
  };
  std::async(std::launch::async, call).get();
}

/// Calls `body` where mounts can be made that nobody else sees; false where the system does not allow it.
template <class Body>
bool with_own_mounts(const Body& body) {
  const auto call = [&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return false;
    body();
    return true;
  };
  return std::async(std::launch::async, call).get();
}

/// To be used where mounts are one's own.
inline void mount_or_throw(const std::string& what, const std::string& folder, const char* kind,
                           unsigned long flags, const std::string& options = "") {
  if (::mount(what.c_str(), folder.c_str(), kind, flags, options.c_str()) != 0)
    throw std::system_error(errno, std::generic_category(), "mount " + folder);
}
/// What is below `folder` can be read and not changed.
inline void make_read_only(const std::string& folder) {
  mount_or_throw(folder, folder, nullptr, MS_BIND);
  mount_or_throw(folder, folder, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY);
}
/// An empty file system of so many bytes.
inline void mount_small(const std::string& folder, std::size_t bytes, unsigned long flags = 0) {
  mount_or_throw("small", folder, "tmpfs", flags, "size=" + std::to_string(bytes));
}

}  // namespace polyhead::testing
