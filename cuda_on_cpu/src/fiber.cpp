#include "fiber.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <iterator>
#include <new>

#include "page.hpp"
#include "sanitizer.hpp"

namespace cuda_on_cpu {
namespace {

/// If all stacks started at the same offset in a page, their live ends would share few cache sets.
constexpr std::size_t kColors = 32;
constexpr std::size_t kColorBytes = 128;

/// A guard page costs two mappings, and Linux allows a process 65530. If stacks used all of them,
/// no memory could be allocated and no library opened. Therefore later stacks have no guard page
/// and no mapping of their own.
constexpr int kMostGuards = 24 * 1024;
std::atomic<int> guard_count{0};  ///< number of existing stacks

/// The bytes that the next stack leaves unused at its top.
std::size_t next_color() {
  static std::atomic<std::size_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed) % kColors * kColorBytes;
}

}  // namespace

void Context::leave_for(Context& to) {
  sanitizer::start_switch(nullptr, to.bottom_, to.size_);
  exchange(to);
  std::abort();
}

Fiber::Fiber(Body body, void* argument) : body_(body), argument_(argument) {
  void* const mapping = mmap(nullptr, kPage + kStackBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<unsigned char*>(mapping) + kPage;
  is_guarded_ = guard_count.fetch_add(1) < kMostGuards && mprotect(mapping, kPage, PROT_NONE) == 0;
  if (!is_guarded_) --guard_count;
  const std::size_t color = next_color();
  unsigned char* const end = stack_ + kStackBytes - color;
#if defined(__x86_64__)
  // The position of a function's return address. There is none.
  void** const top = reinterpret_cast<void**>(end) - 1;
  *top = nullptr;
  left_at_ = top;
  goes_on_at_ = reinterpret_cast<void*>(&Fiber::enter);
#else
  left_at_ =
      boost::context::detail::make_fcontext(end, kStackBytes - color, &Fiber::enter_by_boost);
#endif
  bottom_ = stack_;
  size_ = kStackBytes;
}

Fiber::~Fiber() {
  // Only the part that was in use: the sanitizer's shadow of a whole stack is 16 pages, which are
  // not yet allocated.
  if constexpr (sanitizer::kAddress) {
    const std::size_t used = depth();
    sanitizer::unpoison(stack_ + kStackBytes - used, used);
  }
  munmap(stack_ - kPage, kPage + kStackBytes);
  if (is_guarded_) --guard_count;
}

void* Fiber::top() const { return stack_ + kStackBytes; }

std::size_t Fiber::depth() const {
  // Linux allocates a page when it is accessed for the first time.
  unsigned char has_memory[kStackBytes / kPage] = {};
  if (mincore(stack_, kStackBytes, has_memory) != 0) return 0;
  std::size_t untouched = 0;
  while (untouched < std::size(has_memory) && (has_memory[untouched] & 1u) == 0) ++untouched;
  return kStackBytes - untouched * kPage;
}

bool Fiber::guards(const void* address) const {
  const auto* const byte = static_cast<const unsigned char*>(address);
  return is_guarded_ && byte >= stack_ - kPage && byte < stack_;
}

void Fiber::enter(Context* from, Context* self) {
  Fiber& fiber = *static_cast<Fiber*>(self);
  fiber.arrive(*from);
  fiber.body_(fiber.argument_, fiber);
  std::abort();
}

#if !defined(__x86_64__)
void Fiber::enter_by_boost(boost::context::detail::transfer_t transfer) {
  Context* const* const both = static_cast<Context**>(transfer.data);
  both[0]->left_at_ = transfer.fctx;
  enter(both[0], both[1]);
}
#endif

}  // namespace cuda_on_cpu
