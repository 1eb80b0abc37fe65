#include "async_copies.hpp"

#include <cstring>

namespace cuda_on_cpu {

void AsyncCopies::issue(void* to, const void* from, std::size_t bytes, std::size_t zero_filled) {
  std::memset(to, 0xFF, bytes);
  copies_.push_back(
      {to, from, static_cast<std::uint8_t>(bytes), static_cast<std::uint8_t>(zero_filled), batch_});
}

void AsyncCopies::land_oldest() {
  const Copy& copy = copies_.front();
  const std::size_t read = std::size_t{copy.bytes} - copy.zero_filled;
  std::memcpy(copy.to, copy.from, read);
  std::memset(static_cast<unsigned char*>(copy.to) + read, 0, copy.zero_filled);
  copies_.pop_front();
  ++landed_;
}

void AsyncCopies::wait_prior(std::size_t batches) {
  while (!copies_.empty() && copies_.front().batch + batches < batch_) land_oldest();
}

void AsyncCopies::land_first(std::uint64_t count) {
  while (landed_ < count) land_oldest();
}

void AsyncCopies::clear() {
  copies_.clear();
  landed_ = batch_ = 0;
}

}  // namespace cuda_on_cpu
