/// @file sandbox.hpp
/// @brief What a process may do: nothing, but compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convladder::grader {

/// How a process is shut in; each holds what those above it hold, where the machine has it.
enum class Level {
  limits,    ///< rlimits, a process group of its own, a clock outside
  sealed,    ///< no path, no network, no process: seccomp and Landlock; needs no root
  user,      ///< another user in an empty root folder: needs root
  separated  ///< "namespace": processes, mounts, network of its own
};

/// "limits", "sealed", "user", "namespace".
const char* name_of(Level level);
/// @throws std::invalid_argument for another name
Level level_named(const std::string& name);

/// What the machine offers, found out by trying in a child.
struct Offers {
  int landlock = 0;         ///< Its ABI; 0: not there.
  bool seccomp = false;     ///< Filters of system calls.
  bool root = false;        ///< May become another user, and change its root folder.
  bool namespaces = false;  ///< May have its own.

  /// Whether it is enough for this level.
  bool has(Level level) const;
};

/// Tries.
Offers find_offers();

/// Which system calls are left.
enum class Calls {
  compute,  ///< memory, its own signals, to end: what a worker needs
  build     ///< all but what reaches out of the process: the compiler starts programs
};

/// How a process is shut in, beside its level.
struct Policy {
  Level level = Level::sealed;
  Calls calls = Calls::compute;
  unsigned uid = 0;             ///< At Level::user and above, of worker processes.
  std::string empty_root = {};  ///< Likewise: its root folder.
  std::uint64_t cpu_seconds = 10;
  std::uint64_t data_bytes = std::uint64_t{1} << 30;  ///< Of writable memory.
  std::uint64_t file_bytes = 0;                       ///< Of a file that it writes.
  std::uint64_t open_files = 16;
  std::uint64_t processes = 0;             ///< 0: it may start none.
  int program = -1;                        ///< The program's descriptor; -1: by its path.
  std::vector<std::string> readable = {};  ///< Files and folders, to read and to run.
  std::vector<std::string> writable = {};  ///< Folders.
};

/// Shuts the calling process in, for good: what it starts then is shut in, too.
/// @throws std::runtime_error with the call that failed
void shut_in(const Policy& policy, const Offers& offers);

}  // namespace convladder::grader
