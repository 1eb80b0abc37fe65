/// @file
/// @brief What TMA shall store for one thread, and has not read yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor_load.hpp"
#include "watching.hpp"

namespace cuda_on_cpu {

/// Boxes on their way from shared memory to arrays. They are read when somebody waits for that:
/// who overwrites one before, stores something else.
class BulkStores {
 public:
  void issue(const TensorLoad& box) { stores_.push_back({box, group_}); }
  void commit() { ++group_; }
  /// Stores all boxes of committed groups but the last `groups`.
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
  /// A store that nobody has waited for; null if there is none.
  const TensorLoad* unfinished() const { return stores_.empty() ? nullptr : &stores_.front().box; }

 private:
  struct Store {
    TensorLoad box;
    std::uint64_t group;
  };
  std::vector<Store> stores_;  ///< oldest first
  std::uint64_t group_ = 0;    ///< the one that is open
};

}  // namespace cuda_on_cpu
