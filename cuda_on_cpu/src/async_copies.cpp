#include "async_copies.hpp"

#include <cstring>
#include <type_traits>

#include "watching.hpp"

namespace cuda_on_cpu {

namespace {

/// Calls action(bytes) with a size known at compile time, so that the copy takes one or two
/// instructions.
template <class Action>
void with_known_size(std::size_t bytes, const Action& action) {
  switch (bytes) {
    case 4: return action(std::integral_constant<std::size_t, 4>());
    case 8: return action(std::integral_constant<std::size_t, 8>());
    case 16: return action(std::integral_constant<std::size_t, 16>());
    default: return action(bytes);
  }
}

}  // namespace

void AsyncCopies::issue(void* to, const void* from, std::size_t bytes, std::size_t zero_filled) {
  with_known_size(bytes, [&](auto size) { std::memset(to, 0xFF, size); });
  copies_.push_back(
      {to, from, static_cast<std::uint8_t>(bytes), static_cast<std::uint8_t>(zero_filled), batch_});
}

void AsyncCopies::land(std::size_t count) {
  const auto first = copies_.begin(), end = first + static_cast<std::ptrdiff_t>(count);
  for (auto copy = first; copy != end; ++copy) {
    const std::size_t read = std::size_t{copy->bytes} - copy->zero_filled;
    // Not memcpy(): g++ would use `rep movs`, which has a long start-up time for few bytes.
    with_known_size(read, [&](auto size) { std::memmove(copy->to, copy->from, size); });
    if (copy->zero_filled != 0)
      std::memset(static_cast<unsigned char*>(copy->to) + read, 0, copy->zero_filled);
    detail::tell_watcher(
        [&](inspect::Watcher& watcher) { watcher.copy_landed(copy->to, copy->bytes); });
  }
  copies_.erase(first, end);
  landed_ += count;
}

void AsyncCopies::wait_prior(std::size_t batches) {
  std::size_t count = 0;
  while (count < copies_.size() && copies_[count].batch + batches < batch_) ++count;
  land(count);
}

void AsyncCopies::land_first(std::uint64_t count) {
  if (count > landed_) land(count - landed_);
}

void AsyncCopies::clear() {
  copies_.clear();
  landed_ = batch_ = 0;
}

}  // namespace cuda_on_cpu
