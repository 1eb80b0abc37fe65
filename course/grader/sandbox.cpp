#include "course/grader/sandbox.hpp"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <stdexcept>

namespace convladder::grader {
namespace {

void check(bool worked, const std::string& call) {
  if (!worked) throw std::runtime_error(call + ": " + std::strerror(errno));
}

// --- Landlock, by its own numbers: the headers of Debian 12 end at its ABI 2.

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;

struct Ruleset {
  std::uint64_t files, network, scopes;
};
struct [[gnu::packed]] PathRule {
  std::uint64_t allowed;
  std::int32_t folder;
};

constexpr std::uint64_t kExecute = 1, kWriteFile = 2, kReadFile = 4, kReadFolder = 8;
constexpr std::uint64_t kTruncate = 1u << 14;
/// Of a folder that may be written: remove, make folders and files.
constexpr std::uint64_t kChange = 1u << 4 | 1u << 5 | 1u << 7 | 1u << 8;

/// All that an ABI can forbid of files.
std::uint64_t file_rights(int abi) {
  const int bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;
  return (std::uint64_t{1} << bits) - 1;
}

long create_ruleset(int abi) {
  const Ruleset rules{file_rights(abi), abi >= 4 ? 3u : 0u, abi >= 6 ? 3u : 0u};
  const std::size_t bytes = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  return syscall(kCreateRuleset, &rules, bytes, 0);
}

void allow(int ruleset, int where, std::uint64_t rights, int abi) {
  struct stat about {};
  check(fstat(where, &about) == 0, "fstat");
  if (!S_ISDIR(about.st_mode)) rights &= kExecute | kWriteFile | kReadFile | kTruncate;
  const PathRule rule{rights & file_rights(abi), where};
  check(syscall(kAddRule, ruleset, 1, &rule, 0) == 0, "landlock_add_rule");
}

void forbid_paths(const Policy& policy, int abi) {
  const auto ruleset = static_cast<int>(create_ruleset(abi));
  check(ruleset >= 0, "landlock_create_ruleset");
  const auto allow_path = [&](const std::string& path, std::uint64_t rights) {
    const int where = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (where < 0 && errno == ENOENT) return;  // not every system has a /lib64
    check(where >= 0, "open " + path);
    allow(ruleset, where, rights, abi);
    close(where);
  };
  if (policy.program >= 0) allow(ruleset, policy.program, kExecute | kReadFile, abi);
  for (const std::string& path : policy.readable)
    allow_path(path, kExecute | kReadFile | kReadFolder);
  for (const std::string& path : policy.writable)
    allow_path(path, kReadFile | kReadFolder | kWriteFile | kTruncate | kChange);
  check(syscall(kRestrictSelf, ruleset, 0) == 0, "landlock_restrict_self");
  close(ruleset);
}

// --- seccomp

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#endif

/// A program of the kernel's filter machine, which looks at each system call.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1);  // x32's numbers
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
#endif
  }
  void allow(long call) { answer(call, SECCOMP_RET_ALLOW); }
  void deny(long call) { answer(call, SECCOMP_RET_ERRNO | EPERM); }
  /// Allows it if an argument has this value, and denies it otherwise.
  void allow_if(long call, unsigned argument, std::uint64_t value) {
    const auto at = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument);
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 6);
    load(at);
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(value), 0, 3);
    load(at + 4);
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(value >> 32), 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  /// From now on; `otherwise` is for what no rule names.
  void install(std::uint32_t otherwise) {
    add(BPF_RET | BPF_K, otherwise);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "seccomp");
  }

 private:
  void add(int code, std::uint32_t value, int if_so = 0, int if_not = 0) {
    code_.push_back({static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_so),
                     static_cast<std::uint8_t>(if_not), value});
  }
  void load(std::size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  }
  void answer(long call, std::uint32_t action) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1);
    add(BPF_RET | BPF_K, action);
  }

  std::vector<sock_filter> code_;
};

/// A static program that computes. Whatever else it asks for fails with EPERM, which its libraries
/// know how to take.
void leave_calls_to_compute() {
  Filter filter;
  for (const long call : std::initializer_list<long>{SYS_read,
                                                     SYS_write,
                                                     SYS_writev,
                                                     SYS_close,
                                                     SYS_fstat,
                                                     SYS_lseek,
                                                     SYS_mmap,
                                                     SYS_mprotect,
                                                     SYS_munmap,
                                                     SYS_mremap,
                                                     SYS_madvise,
                                                     SYS_mincore,
                                                     SYS_brk,
                                                     SYS_rt_sigaction,
                                                     SYS_rt_sigprocmask,
                                                     SYS_rt_sigreturn,
                                                     SYS_sigaltstack,
                                                     SYS_futex,
                                                     SYS_set_tid_address,
                                                     SYS_set_robust_list,
                                                     SYS_rseq,
                                                     SYS_getrandom,
                                                     SYS_clock_gettime,
                                                     SYS_clock_nanosleep,
                                                     SYS_nanosleep,
                                                     SYS_sched_yield,
                                                     SYS_sched_getaffinity,
                                                     SYS_sysinfo,
                                                     SYS_getpid,
                                                     SYS_gettid,
                                                     SYS_exit,
                                                     SYS_exit_group,
                                                     SYS_execveat,
                                                     SYS_restart_syscall}) {
    filter.allow(call);
  }
#ifdef SYS_arch_prctl
  filter.allow(SYS_arch_prctl);
#endif
  filter.allow_if(SYS_prlimit64, 2, 0);  // to ask for limits, not to set them
  filter.allow_if(SYS_tgkill, 0, static_cast<std::uint64_t>(getpid()));  // abort()
  filter.install(SECCOMP_RET_ERRNO | EPERM);
}

void leave_calls_to_build() {
  Filter filter;
  for (const long call : std::initializer_list<long>{SYS_ptrace,
                                                     SYS_process_vm_readv,
                                                     SYS_process_vm_writev,
                                                     SYS_socket,
                                                     SYS_socketpair,
                                                     SYS_connect,
                                                     SYS_bind,
                                                     SYS_bpf,
                                                     SYS_unshare,
                                                     SYS_setns,
                                                     SYS_mount,
                                                     SYS_umount2,
                                                     SYS_pivot_root,
                                                     SYS_chroot,
                                                     SYS_keyctl,
                                                     SYS_add_key,
                                                     SYS_request_key,
                                                     SYS_perf_event_open,
                                                     SYS_userfaultfd,
                                                     SYS_init_module,
                                                     SYS_finit_module,
                                                     SYS_delete_module,
                                                     SYS_kexec_load,
                                                     SYS_open_by_handle_at,
                                                     SYS_kill,
                                                     SYS_tkill,
                                                     SYS_reboot,
                                                     SYS_swapon,
                                                     425L /* io_uring_setup */,
                                                     426L,
                                                     427L,
                                                     424L /* pidfd_send_signal */,
                                                     438L /* pidfd_getfd */}) {
    filter.deny(call);
  }
  filter.install(SECCOMP_RET_ALLOW);
}

void limit(int what, std::uint64_t value) {
  const rlimit both{value, value};
  check(setrlimit(static_cast<__rlimit_resource>(what), &both) == 0, "setrlimit");
}

/// Whether a child can do it.
template <class Try>
bool can(const Try& attempt) {
  const pid_t child = fork();
  if (child == 0) _exit(attempt() ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

constexpr const char* kNames[] = {"limits", "sealed", "user", "namespace"};

}  // namespace

const char* name_of(Level level) { return kNames[static_cast<std::size_t>(level)]; }

Level level_named(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<Level>(i);
  throw std::invalid_argument("level = " + name + ": must be limits, sealed, user or namespace");
}

bool Offers::has(Level level) const {
  switch (level) {
    case Level::limits: return true;
    case Level::sealed: return landlock > 0 && seccomp;
    case Level::user: return root && seccomp;
    case Level::separated: return namespaces && seccomp;
  }
  return false;
}

Offers find_offers() {
  Offers offers;
  const long abi = syscall(kCreateRuleset, nullptr, 0, 1);
  if (abi > 0 && can([&] {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        const long ruleset = create_ruleset(static_cast<int>(abi));
        return ruleset >= 0 && syscall(kRestrictSelf, ruleset, 0) == 0;
      }))
    offers.landlock = static_cast<int>(abi);
  offers.seccomp = can([] {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    Filter filter;
    filter.install(SECCOMP_RET_ALLOW);
    return true;
  });
  offers.root = geteuid() == 0 && can([] {
                  return chroot("/") == 0 && setgroups(0, nullptr) == 0 &&
                         setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0;
                });
  offers.namespaces = can([] {
    return unshare((geteuid() == 0 ? 0 : CLONE_NEWUSER) | CLONE_NEWNET | CLONE_NEWNS |
                   CLONE_NEWIPC | CLONE_NEWPID) == 0;
  });
  return offers;
}

void shut_in(const Policy& policy, const Offers& offers) {
  // SIGXCPU, and a second later SIGKILL: by the first, one sees what it was.
  const rlimit cpu{policy.cpu_seconds, policy.cpu_seconds + 1};
  check(setrlimit(RLIMIT_CPU, &cpu) == 0, "setrlimit");
  limit(RLIMIT_DATA, policy.data_bytes);
  limit(RLIMIT_FSIZE, policy.file_bytes);
  limit(RLIMIT_NOFILE, policy.open_files);
  limit(RLIMIT_CORE, 0);
  const bool worker = policy.calls == Calls::compute;
  if (worker && policy.level >= Level::user && offers.root) {
    check(chroot(policy.empty_root.c_str()) == 0 && chdir("/") == 0, "chroot");
    check(setgroups(0, nullptr) == 0, "setgroups");
    check(setresgid(policy.uid, policy.uid, policy.uid) == 0, "setresgid");
    check(setresuid(policy.uid, policy.uid, policy.uid) == 0, "setresuid");
  }
  // Behind the change of user: it counts the user's processes, this one among them.
  limit(RLIMIT_NPROC, policy.processes);
  check(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0, "prctl");
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl");
  if (policy.level == Level::limits) return;
  if (offers.landlock > 0) forbid_paths(policy, offers.landlock);
  if (offers.seccomp) worker ? leave_calls_to_compute() : leave_calls_to_build();
}

}  // namespace convladder::grader
