/// @file
/// @brief The pending TMA stores of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor_load.hpp"
#include "watching.hpp"

namespace cuda_on_cpu {

/// Boxes that are being stored from shared memory to arrays. They are read when a thread waits for
/// them: an earlier write to the box changes what is stored.
class BulkStores {
 public:
  void issue(const TensorLoad& box) { stores_.push_back({box, group_}); }
  void commit() { ++group_; }
  /// Stores all boxes of committed groups except the last `groups`.
  void wait_prior(std::uint64_t groups) {
    std::size_t count = 0;
    for (; count < stores_.size() && stores_[count].group + groups < group_; ++count) {
      const TensorLoad& box = stores_[count].box;
      box.store();
      detail::tell_watcher(
          [&](inspect::Watcher& watcher) { watcher.unit_read_ended(box.to, box.extent()); });
    }
    stores_.erase(stores_.begin(), stores_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  /// A store that no thread has waited for; null if there is none.
  const TensorLoad* unfinished() const { return stores_.empty() ? nullptr : &stores_.front().box; }

 private:
  struct Store {
    TensorLoad box;
    std::uint64_t group;
  };
  std::vector<Store> stores_;  ///< oldest first
  std::uint64_t group_ = 0;    ///< the open group
};

}  // namespace cuda_on_cpu
