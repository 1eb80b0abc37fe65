/// @file
/// @brief The pending asynchronous copies of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuda_on_cpu {

class AsyncCopies {
 public:
  /// Fills the destination with NaN bytes until the copy completes.
  void issue(void* to, const void* from, std::size_t bytes, std::size_t zero_filled);
  void commit() { ++batch_; }
  /// Completes all copies of committed batches except the last `batches`.
  void wait_prior(std::size_t batches);
  /// The number of copies issued so far.
  std::uint64_t issued() const { return landed_ + copies_.size(); }
  /// Completes the first `count` copies that were issued, except those that are already complete.
  void land_first(std::uint64_t count);
  /// Discards the pending copies, which no thread waited for.
  void clear();

 private:
  struct Copy {
    void* to;
    const void* from;
    std::uint8_t bytes;
    std::uint8_t zero_filled;
    std::uint64_t batch;
  };
  /// Completes the oldest `count` copies.
  void land(std::size_t count);

  std::vector<Copy> copies_;  ///< oldest first
  std::uint64_t landed_ = 0;  ///< copies
  std::uint64_t batch_ = 0;   ///< the open batch
};

}  // namespace cuda_on_cpu
