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

namespace context = boost::context::detail;

/// Were all stacks to start at the same offset in a page, their live ends would share few cache
/// sets.
constexpr std::size_t kColors = 32;
constexpr std::size_t kColorBytes = 128;

/// How many bytes the next stack leaves unused at its top.
std::size_t next_color() {
  static std::atomic<std::size_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed) % kColors * kColorBytes;
}

}  // namespace

void Context::leave_for(Context& to) {
  sanitizer::start_switch(nullptr, to.bottom_, to.size_);
  Switch here{this, &to};
  context::jump_fcontext(to.left_at_, &here);
  std::abort();
}

Fiber::Fiber(Body body, void* argument) : body_(body), argument_(argument) {
  void* const mapping = mmap(nullptr, kPage + kStackBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<unsigned char*>(mapping) + kPage;
  // A guard page costs a mapping, of which Linux allows 65530: beyond that, stacks go without.
  static_cast<void>(mprotect(mapping, kPage, PROT_NONE));
  const std::size_t color = next_color();
  left_at_ =
      context::make_fcontext(stack_ + kStackBytes - color, kStackBytes - color, &Fiber::enter);
  bottom_ = stack_;
  size_ = kStackBytes;
}

Fiber::~Fiber() {
  // Only what was in use: the sanitizer's notes on a whole stack are 16 pages, which have no memory
  // yet.
  if constexpr (sanitizer::kAddress) {
    const std::size_t used = depth();
    sanitizer::unpoison(stack_ + kStackBytes - used, used);
  }
  munmap(stack_ - kPage, kPage + kStackBytes);
}

void* Fiber::top() const { return stack_ + kStackBytes; }

std::size_t Fiber::depth() const {
  // Linux gives a page memory when it is touched for the first time.
  unsigned char has_memory[kStackBytes / kPage] = {};
  if (mincore(stack_, kStackBytes, has_memory) != 0) return 0;
  std::size_t untouched = 0;
  while (untouched < std::size(has_memory) && (has_memory[untouched] & 1u) == 0) ++untouched;
  return kStackBytes - untouched * kPage;
}

bool Fiber::guards(const void* address) const {
  const auto* const byte = static_cast<const unsigned char*>(address);
  return byte >= stack_ - kPage && byte < stack_;
}

void Fiber::enter(context::transfer_t transfer) {
  Fiber& self = *static_cast<Fiber*>(static_cast<const Switch*>(transfer.data)->to);
  self.arrive(transfer);
  self.body_(self.argument_, self);
  std::abort();
}

}  // namespace cuda_on_cpu
