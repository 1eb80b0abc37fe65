/// @file
/// @brief The asynchronous state of a block, and the operations that are still pending when the
/// block ends.
#include <memory>

#include "block_runner.hpp"
#include "report_text.hpp"

namespace cuda_on_cpu {

Mbarrier* BlockRunner::find_mbarrier(const std::uint64_t* object) {
  for (Mbarrier& barrier : mbarriers_) {
    if (barrier.object() == object) return &barrier;
  }
  return nullptr;
}

BlockRunner::NamedBarrier& BlockRunner::named_barrier(unsigned id) {
  constexpr std::size_t kNamedBarriers = 16;
  named_barriers_.resize(kNamedBarriers);
  return named_barriers_[id];
}

Warpgroup* BlockRunner::make_warpgroup() {
  const std::size_t number = current_ / kWarpgroup;
  if ((number + 1) * kWarpgroup > launch_->threads) return nullptr;
  if (warpgroups_.empty()) {
    warpgroups_.resize(launch_->threads / kWarpgroup);
    sleepers_.resize(warpgroups_.size());
  }
  if (!warpgroups_[number]) {
    warpgroups_[number] = std::make_unique<Warpgroup>(
        [](void* runner, std::uint32_t address) {
          return static_cast<BlockRunner*>(runner)->shared_range(address);
        },
        this);
  }
  return warpgroups_[number].get();
}

void BlockRunner::check_nothing_under_way() {
  for (const Mbarrier& barrier : mbarriers_) {
    if (barrier.has_copies()) {
      fail(cudaErrorLaunchFailure, describe_block() +
                                       " ended without a wait for the copies that arrive at " +
                                       barrier.describe() + ".");
      return;
    }
    if (barrier.has_stores()) {
      const AsyncStore& store = barrier.first_store();
      fail(cudaErrorLaunchFailure,
           describe_block() + " ended without a wait for the data that thread " +
               std::to_string(store.thread) + " of block " + std::to_string(store.block) +
               " stored there at " + describe_site(store.site) + ".");
      return;
    }
    if (!barrier.has_loads()) continue;
    fail(cudaErrorLaunchFailure, describe_block() + " ended without a wait for the load that " +
                                     describe_thread_index(barrier.first_load().thread) +
                                     " issued at " + describe_site(barrier.first_load().site) +
                                     ".");
    return;
  }
  for (const BulkStores& stores : bulk_stores_) {
    if (stores.unfinished() == nullptr) continue;
    fail(cudaErrorLaunchFailure, describe_block() + " ended without a wait for the store that " +
                                     describe_thread_index(stores.unfinished()->thread) +
                                     " issued at " + describe_site(stores.unfinished()->site) +
                                     ".");
    return;
  }
  for (const auto& warpgroup : warpgroups_) {
    if (warpgroup == nullptr || warpgroup->unfinished() == nullptr) continue;
    fail(cudaErrorLaunchFailure,
         describe_block() + " ended without a commit of, or a wait for, the wgmma issued at " +
             describe_site(*warpgroup->unfinished()) + ".");
    return;
  }
}

}  // namespace cuda_on_cpu
