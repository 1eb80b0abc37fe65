/// @file
/// @brief The part of <cooperative_groups.h> that synchronizes a block or a whole grid.
#pragma once

#include <cuda_runtime.h>

namespace cuda_on_cpu::cooperative_groups {

/// The threads of the calling thread's block.
class thread_block {
 public:
  void sync(detail::Site site = detail::Site::current()) const {
    detail::block_barrier(detail::BarrierKind::sync, false, site);
  }
  unsigned thread_rank() const {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  unsigned num_threads() const { return blockDim.x * blockDim.y * blockDim.z; }
  unsigned size() const { return num_threads(); }
  dim3 group_index() const { return blockIdx; }
  dim3 thread_index() const { return threadIdx; }
};

/// All threads of the grid; sync() requires a cooperative launch.
class grid_group {
 public:
  bool is_valid() const { return detail::grid_is_cooperative(); }
  void sync(detail::Site site = detail::Site::current()) const { detail::grid_barrier(site); }
  unsigned long long block_rank() const {
    return blockIdx.x + static_cast<unsigned long long>(gridDim.x) *
                            (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
  }
  unsigned long long num_blocks() const {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  unsigned long long thread_rank() const {
    return block_rank() * thread_block().num_threads() + thread_block().thread_rank();
  }
  unsigned long long num_threads() const { return num_blocks() * thread_block().num_threads(); }
  unsigned long long size() const { return num_threads(); }
};

inline thread_block this_thread_block() { return {}; }
inline grid_group this_grid() { return {}; }

template <class Group>
void sync(const Group& group, detail::Site site = detail::Site::current()) {
  group.sync(site);
}

}  // namespace cuda_on_cpu::cooperative_groups
