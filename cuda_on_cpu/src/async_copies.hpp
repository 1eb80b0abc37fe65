/// @file
/// @brief The asynchronous copies of one thread that have not landed yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuda_on_cpu {

class AsyncCopies {
 public:
  /// Fills the destination with NaN bytes until the copy lands.
  void issue(void* to, const void* from, std::size_t bytes, std::size_t zero_filled);
  void commit() { ++batch_; }
  /// Lands all copies of committed batches but the last `batches`.
  void wait_prior(std::size_t batches);
  /// How many copies were issued so far.
  std::uint64_t issued() const { return landed_ + copies_.size(); }
  /// Lands the first `count` copies that were issued, but for those that have.
  void land_first(std::uint64_t count);
  /// Forgets what has not landed: nobody waited for it.
  void clear();

 private:
  struct Copy {
    void* to;
    const void* from;
    std::uint8_t bytes;
    std::uint8_t zero_filled;
    std::uint64_t batch;
  };
  /// Lands the oldest `count` copies.
  void land(std::size_t count);

  std::vector<Copy> copies_;  ///< oldest first
  std::uint64_t landed_ = 0;  ///< copies
  std::uint64_t batch_ = 0;   ///< the one that is open
};

}  // namespace cuda_on_cpu
