#include "memory_fault.hpp"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cuda_on_cpu/control.hpp>
#include <memory>
#include <string>

#include "block_runner.hpp"
#include "device_arena.hpp"
#include "sanitizer.hpp"

namespace cuda_on_cpu {
namespace {

struct sigaction previous_segv;
struct sigaction previous_bus;

/// Resumes the interrupted code in `function`, on an empty stack that ends at `stack_top`.
bool continue_in(void* interrupted, void (*function)(), void* stack_top) {
  auto& context = static_cast<ucontext_t*>(interrupted)->uc_mcontext;
  // As after a call: the return address, which is never used, misaligns the stack by 8 modulo 16.
  const auto stack = reinterpret_cast<std::uintptr_t>(stack_top) - 64;
#if defined(__x86_64__)
  context.gregs[REG_RIP] = reinterpret_cast<greg_t>(function);
  context.gregs[REG_RSP] = static_cast<greg_t>(stack - 8);
  return true;
#elif defined(__aarch64__)
  context.pc = reinterpret_cast<std::uintptr_t>(function);
  context.sp = stack;
  return true;
#else
  static_cast<void>(context), static_cast<void>(function), static_cast<void>(stack);
  return false;
#endif
}

[[noreturn]] void end_process(const std::string& sentence) {
  static_cast<void>(!write(STDERR_FILENO, sentence.data(), sentence.size()));
  _exit(control::kMemoryFaultExit);
}

void pass_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    sigaction(signal, &previous, nullptr);  // the access is repeated, now without this handler
  } else {
    previous.sa_handler(signal);
  }
}

// A fault is synchronous: it was raised by the program's own code, so allocating a string here is
// no worse than an allocation by that code. Faults inside malloc itself cannot be handled.
void on_fault(int signal, siginfo_t* info, void* context) {
  BlockRunner* const runner = BlockRunner::of_running_kernel();
  const DeviceArena& arena = DeviceArena::instance();
  if (runner != nullptr && !sanitizer::kAddress) {
    runner->note_fault(info->si_addr);
    if (continue_in(context, &BlockRunner::abandon_faulted_thread, runner->faulted_stack_top()))
      return;
  }
  if (runner == nullptr && arena.contains(info->si_addr)) {
    char address[32];
    std::snprintf(address, sizeof address, "%p", info->si_addr);
    end_process("cuda_on_cpu: host code dereferenced the device pointer " + std::string(address) +
                ": " + arena.describe(info->si_addr) + ". Copy the data with cudaMemcpy.\n");
  }
  pass_on(signal == SIGSEGV ? previous_segv : previous_bus, signal, info, context);
}

/// A signal stack with the lifetime of its thread.
class SignalStack {
 public:
  SignalStack() {
    stack_t present{};
    if (sigaltstack(nullptr, &present) == 0 && !(present.ss_flags & SS_DISABLE)) return;
    memory_ = std::make_unique<unsigned char[]>(kBytes);
    const stack_t ours{memory_.get(), 0, kBytes};
    sigaltstack(&ours, nullptr);
  }
  ~SignalStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr std::size_t kBytes = std::size_t{64} * 1024;
  std::unique_ptr<unsigned char[]> memory_;
};

}  // namespace

void install_memory_fault_handler() {
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_segv);
  sigaction(SIGBUS, &action, &previous_bus);
}

void prepare_thread_for_memory_faults() { thread_local const SignalStack stack; }

}  // namespace cuda_on_cpu
