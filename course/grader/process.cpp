#include "course/grader/process.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace convladder::grader {
namespace {

void check(bool worked, const char* call) {
  if (!worked) throw std::runtime_error(std::string(call) + ": " + std::strerror(errno));
}

/// Where the worker's program is while its descriptors are set in order; above all that it keeps.
constexpr int kProgram = 64;
/// Where it says why it cannot be started. Both close as the program begins, which so cannot say
/// it.
constexpr int kFailure = kProgram + 1;

/// The worker's side of the start: does not come back.
[[noreturn]] void begin_worker(Policy policy, const Offers& offers, std::span<const int> files,
                               int output, int failure) {
  try {
    setpgid(0, 0);
    // First out of the way of the numbers that they will get.
    std::vector<int> copies;
    for (const int file : files) copies.push_back(fcntl(file, F_DUPFD, kFailure + 1));
    const int text = fcntl(output, F_DUPFD, kFailure + 1);
    failure = fcntl(failure, F_DUPFD, kFailure + 1);
    const int program = fcntl(policy.program, F_DUPFD, kFailure + 1);
    check(dup3(failure, kFailure, O_CLOEXEC) == kFailure, "dup3");
    failure = kFailure;
    check(dup3(program, kProgram, O_CLOEXEC) == kProgram, "dup3");
    const int nothing = open("/dev/null", O_RDONLY);
    check(nothing >= 0 && dup2(nothing, 0) == 0, "open /dev/null");
    check(dup2(text, 1) == 1 && dup2(text, 2) == 2, "dup2");
    for (std::size_t i = 0; i < copies.size(); ++i)
      check(dup2(copies[i], 3 + static_cast<int>(i)) >= 0, "dup2");
    const auto first_free = 3 + static_cast<unsigned>(copies.size());
    check(syscall(SYS_close_range, first_free, kProgram - 1, 0) == 0, "close_range");
    check(syscall(SYS_close_range, kFailure + 1, ~0u, 0) == 0, "close_range");
    policy.program = kProgram;
    shut_in(policy, offers);
    char name[] = "worker";
    char* arguments[] = {name, nullptr};
    char* environment[] = {nullptr};
    syscall(SYS_execveat, kProgram, "", arguments, environment, AT_EMPTY_PATH);
    check(false, "execveat");
  } catch (const std::exception& error) {
    const std::string line = error.what();
    static_cast<void>(!write(failure, line.data(), line.size()));
  }
  _exit(1);
}

/// What has become this process's child, since its own parent ended.
std::vector<pid_t> children() {
  std::vector<pid_t> all;
  std::ifstream list("/proc/thread-self/children");
  for (pid_t child = 0; list >> child;) all.push_back(child);
  return all;
}

void end_all_children() {
  for (int round = 0; round < 1000; ++round) {
    for (const pid_t child : children()) kill(child, SIGKILL);
    const pid_t ended = waitpid(-1, nullptr, 0);
    if (ended < 0 && errno == ECHILD) return;
  }
}

/// How long a process has been ready to run, and had no processor, because of what runs beside it.
double seconds_without_processor(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/schedstat");
  double run = 0, waited = 0;  // ns; where the kernel does not tell, none
  file >> run >> waited;
  return file ? 1e-9 * waited : 0;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double children_cpu() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  close();
  number_ = other.release();
  return *this;
}

int Descriptor::release() { return std::exchange(number_, -1); }

void Descriptor::close() {
  if (number_ >= 0) ::close(release());
}

SharedMemory::SharedMemory(std::size_t bytes)
    : file_(memfd_create("convladder", MFD_CLOEXEC | MFD_ALLOW_SEALING)), size_(bytes) {
  check(file() >= 0, "memfd_create");
  check(ftruncate(file(), static_cast<off_t>(bytes)) == 0, "ftruncate");
  check(fcntl(file(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0, "F_ADD_SEALS");
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file(), 0);
  check(memory != MAP_FAILED, "mmap");
  data_ = static_cast<std::byte*>(memory);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

void SharedMemory::make_read_only() {
  munmap(std::exchange(data_, nullptr), size_);
  check(fcntl(file(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) == 0, "F_ADD_SEALS");
}

void become_keeper(Level level, const Offers& offers) {
  check(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "prctl");
  if (level == Level::separated) {
    const int user = offers.root ? 0 : CLONE_NEWUSER;
    check(unshare(user | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC) == 0, "unshare");
  }
  check(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "prctl");
}

Ended run_shut_in(const Policy& policy, const Offers& offers, std::span<const int> files,
                  double wall_seconds) {
  using Clock = std::chrono::steady_clock;
  int ends[2];
  check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  Descriptor output(ends[0]), input(ends[1]);
  check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  Descriptor why(ends[0]), failure(ends[1]);
  const double cpu_before = children_cpu();
  // As fork() does, but for the namespace, in which the worker is the first process: with it, all
  // that it started ends.
  const unsigned long flags =
      SIGCHLD | (policy.level == Level::separated ? static_cast<unsigned long>(CLONE_NEWPID) : 0);
  const auto pid = static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, 0));
  check(pid >= 0, "clone");
  if (pid == 0) begin_worker(policy, offers, files, input.number(), failure.number());
  input.close();
  failure.close();
  setpgid(pid, pid);  // whoever of us two comes first
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  check(process.number() >= 0, "pidfd_open");

  Ended ended;
  const auto begin = Clock::now();
  for (bool running = true; running;) {
    const std::chrono::duration<double> passed = Clock::now() - begin;
    const double left = wall_seconds - (passed.count() - seconds_without_processor(pid));
    ended.timed_out = left <= 0;
    pollfd waits[] = {{process.number(), POLLIN, 0}, {output.number(), POLLIN, 0}};
    check(poll(waits, 2, 1 + static_cast<int>(1000 * std::max(0.0, left))) >= 0, "poll");
    if (waits[1].revents != 0) {
      char piece[4096];
      const auto count = read(output.number(), piece, sizeof piece);
      if (count > 0) ended.text.append(piece, static_cast<std::size_t>(count));
      if (count <= 0) output.close();  // poll() passes over -1
      ended.too_much_text = ended.text.size() > kMostText;
    }
    running = !ended.timed_out && !ended.too_much_text && (waits[0].revents & POLLIN) == 0;
  }
  kill(-pid, SIGKILL);
  syscall(424 /* pidfd_send_signal */, process.number(), SIGKILL, nullptr, 0);
  int status = 0;
  check(waitpid(pid, &status, 0) == pid, "waitpid");
  end_all_children();
  char reason[256];
  if (const auto count = read(why.number(), reason, sizeof reason); count > 0)
    throw std::runtime_error("the worker cannot be started: " +
                             std::string(reason, static_cast<std::size_t>(count)));
  // The last output is still in the pipe, whose other ends are all closed.
  if (output.number() >= 0) {
    fcntl(output.number(), F_SETFL, O_NONBLOCK);
    char piece[4096];
    for (ssize_t count; ended.text.size() <= kMostText &&
                        (count = read(output.number(), piece, sizeof piece)) > 0;)
      ended.text.append(piece, static_cast<std::size_t>(count));
  }
  ended.text.resize(std::min(ended.text.size(), kMostText));
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  ended.cpu_seconds = children_cpu() - cpu_before;
  ended.timed_out = ended.timed_out || ended.signal == SIGXCPU ||
                    (ended.signal == SIGKILL && !ended.too_much_text &&
                     ended.cpu_seconds >= static_cast<double>(policy.cpu_seconds));
  return ended;
}

}  // namespace convladder::grader
