/// @file
/// @brief A stack of its own and the switch to it and back.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "sanitizer.hpp"

namespace cuda_on_cpu {

/// Runs `body(argument, *this)` on its own stack. Belongs to one OS thread from its first resume()
/// on.
///
/// The page below the stack is never mapped, so an overflow faults rather than corrupts a
/// neighbour.
class Fiber {
 public:
  using Body = void (*)(void* argument, Fiber& self);

  Fiber(Body body, void* argument);
  /// The fiber must be suspended, or never have run. Frames still on its stack are dropped.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From outside: goes on in the fiber until it suspends itself.
  void resume();
  /// From inside: goes back to where resume() was called.
  void suspend();

  /// From inside: goes back to where resume() was called, never to be resumed again.
  [[noreturn]] void leave();

  /// Whether `address` lies in the page below the stack.
  bool guards(const void* address) const;
  /// The highest address of the stack, where it starts.
  void* top() const;
  /// Bytes from there to the end of the lowest page that was ever touched.
  std::size_t depth() const;

 private:
  /// Sanitizers' redzones make frames several times larger.
  static constexpr std::size_t kStackBytes = sanitizer::kAddress ? 512 * 1024 : 128 * 1024;

  [[noreturn]] static void enter(boost::context::detail::transfer_t from);

  Body body_;
  void* argument_;
  unsigned char* stack_;  ///< its lowest address; the guard page is below
  boost::context::detail::fcontext_t inside_;
  boost::context::detail::fcontext_t outside_ = nullptr;
  // AddressSanitizer's picture of the two stacks.
  void* inside_shadow_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
};

// The CPU predicts a return from where the last call was made, and wrongly if that was on another
// stack: so a switch should be inlined into as few frames as can be.

[[gnu::always_inline]] inline void Fiber::resume() {
  void* outside_shadow = nullptr;
  sanitizer::start_switch(&outside_shadow, stack_, kStackBytes);
  inside_ = boost::context::detail::jump_fcontext(inside_, this).fctx;
  sanitizer::finish_switch(outside_shadow, nullptr, nullptr);
}

[[gnu::always_inline]] inline void Fiber::suspend() {
  sanitizer::start_switch(&inside_shadow_, outside_bottom_, outside_size_);
  outside_ = boost::context::detail::jump_fcontext(outside_, nullptr).fctx;
  sanitizer::finish_switch(inside_shadow_, &outside_bottom_, &outside_size_);
}

}  // namespace cuda_on_cpu
