/// @file
/// @brief Stacks of their own, and the switch from one to another.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "sanitizer.hpp"

namespace cuda_on_cpu {

/// Code that can be left and gone back to: a fiber, or what runs on the OS thread's own stack.
/// Belongs to one OS thread.
class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// From inside: goes on in `to`. Returns when some context switches to this one: at once if `to`
  /// is this one.
  void switch_to(Context& to);
  /// From inside: goes on in `to`, never to come back.
  [[noreturn]] void leave_for(Context& to);

 protected:
  /// What the context that is left hands to the one that goes on, which notes where the first one
  /// was left: that is known only afterwards.
  struct Switch {
    Context* from;
    Context* to;
  };
  /// To be called first on arriving in this context.
  void arrive(boost::context::detail::transfer_t transfer);

  boost::context::detail::fcontext_t left_at_ = nullptr;
  // AddressSanitizer's picture of the stack.
  void* shadow_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
};

/// Runs `body(argument, *this)` on its own stack, from the first switch to it on. The body must not
/// return, but leave.
///
/// The page below the stack is never mapped, so an overflow faults rather than corrupts a
/// neighbour.
class Fiber : public Context {
 public:
  using Body = void (*)(void* argument, Fiber& self);

  Fiber(Body body, void* argument);
  /// The fiber must not be running. Frames still on its stack are dropped.
  ~Fiber();

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
};

// The CPU predicts a return from where the last call was made, and wrongly if that was on another
// stack: so a switch should be inlined into as few frames as can be.

[[gnu::always_inline]] inline void Context::switch_to(Context& to) {
  if (&to == this) return;
  sanitizer::start_switch(&shadow_, to.bottom_, to.size_);
  Switch here{this, &to};
  arrive(boost::context::detail::jump_fcontext(to.left_at_, &here));
}

[[gnu::always_inline]] inline void Context::arrive(boost::context::detail::transfer_t transfer) {
  Context& from = *static_cast<const Switch*>(transfer.data)->from;
  from.left_at_ = transfer.fctx;
  sanitizer::finish_switch(shadow_, &from.bottom_, &from.size_);
}

}  // namespace cuda_on_cpu
