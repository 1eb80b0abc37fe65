/// @file
/// @brief Fibers: separate stacks, and the switch between them.
#pragma once

#include <cstddef>

#include "sanitizer.hpp"

#if !defined(__x86_64__)
#include <boost/context/detail/fcontext.hpp>
#endif

namespace cuda_on_cpu {

/// Code that can be suspended and resumed: a fiber, or the code on the OS thread's own stack.
/// Belongs to one OS thread.
class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Called from inside: continues in `to`. Returns when a context switches back to this one; at
  /// once if `to` is this one.
  void switch_to(Context& to);
  /// Called from inside: continues in `to` and never returns.
  [[noreturn]] void leave_for(Context& to);

  /// Prefetches the frames on top of the stack that this context has left.
  void prefetch() const {
    const char* const top = static_cast<const char*>(left_at_);
    for (std::ptrdiff_t line = 0; line < kLinesFetched; ++line)
      __builtin_prefetch(top + line * kCacheLine, 1);
  }

 protected:
  /// Switches from this context's stack, which is in use, to that of `to`; returns the context that
  /// switches back.
  Context& exchange(Context& to);
  /// Must be called first after arriving in this context.
  void arrive(Context& from) { sanitizer::finish_switch(shadow_, &from.bottom_, &from.size_); }

  static constexpr int kCacheLine = 64;    ///< bytes
  static constexpr int kLinesFetched = 8;  ///< a larger value brings no improvement

  // While the stack is not in use:
  void* left_at_ = nullptr;  ///< its stack pointer
#if defined(__x86_64__)
  void* frame_ = nullptr;       ///< the frame pointer
  void* goes_on_at_ = nullptr;  ///< where to continue
#endif
  // AddressSanitizer's shadow stack.
  void* shadow_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
};

/// Runs `body(argument, *this)` on its own stack, from the first switch to it on. The body must not
/// return, but must call leave().
///
/// The page below the stack is not accessible, so that an overflow faults instead of corrupting a
/// neighbour. This holds for as many stacks as the limit on mappings allows.
class Fiber : public Context {
 public:
  using Body = void (*)(void* argument, Fiber& self);

  Fiber(Body body, void* argument);
  /// The fiber must not be running. Frames that remain on its stack are dropped.
  ~Fiber();

  /// Whether `address` is in the page below the stack.
  bool guards(const void* address) const;
  /// The highest address of the stack, its start.
  void* top() const;
  /// Bytes from there to the end of the lowest page that was ever accessed.
  std::size_t depth() const;

 private:
  /// Sanitizers' redzones make frames several times larger.
  static constexpr std::size_t kStackBytes = sanitizer::kAddress ? 512 * 1024 : 128 * 1024;

  /// Entry point of a fiber: `from` is the context whose stack was in use before.
  [[noreturn]] static void enter(Context* from, Context* self);
#if !defined(__x86_64__)
  [[noreturn]] static void enter_by_boost(boost::context::detail::transfer_t transfer);
#endif

  Body body_;
  void* argument_;
  unsigned char* stack_;  ///< its lowest address; the page below guards it
  bool is_guarded_;       ///< whether that page is inaccessible
};

// The CPU predicts the return address from the last call, which is wrong if that was on another
// stack. A switch should therefore be inlined into as few frames as possible.

#if defined(__x86_64__)

// Faster than Boost's function: there is no call, only the live registers are saved by the
// compiler, and the floating-point control state, which kernels do not change, is not saved.
[[gnu::always_inline]] inline Context& Context::exchange(Context& to) {
  Context *before = this, *after = &to;  // in the registers of a function's first two parameters
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, %c2(%%rdi)\n\t"
      "movq %%rbp, %c3(%%rdi)\n\t"
      "movq %%rax, %c4(%%rdi)\n\t"
      "movq %c2(%%rsi), %%rsp\n\t"
      "movq %c3(%%rsi), %%rbp\n\t"
      "jmpq *%c4(%%rsi)\n"
      "1:"
      : "+D"(before), "+S"(after)
      : "i"(offsetof(Context, left_at_)), "i"(offsetof(Context, frame_)),
        "i"(offsetof(Context, goes_on_at_))
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
  return *before;
}

#else

[[gnu::always_inline]] inline Context& Context::exchange(Context& to) {
  // The position where this context was left is known only afterwards: the context that continues
  // records it.
  Context* both[] = {this, &to};
  const auto transfer = boost::context::detail::jump_fcontext(to.left_at_, both);
  Context& from = **static_cast<Context**>(transfer.data);
  from.left_at_ = transfer.fctx;
  return from;
}

#endif

[[gnu::always_inline]] inline void Context::switch_to(Context& to) {
  if (&to == this) return;
  sanitizer::start_switch(&shadow_, to.bottom_, to.size_);
  arrive(exchange(to));
}

}  // namespace cuda_on_cpu
