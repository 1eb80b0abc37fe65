#include "grid_launch.hpp"

#include <algorithm>
#include <numeric>

#include "random.hpp"

namespace cuda_on_cpu {
namespace {

using control::ThreadOrder;

/// A step coprime to `clusters`, so that repeated steps visit every cluster once; not 1 if there is
/// another.
std::uint64_t shuffling_stride(std::uint64_t clusters, std::uint64_t seed) {
  if (clusters < 3) return 1;
  // Below 2^31; otherwise the product in take_cluster() could overflow for the largest grids.
  const std::uint64_t limit = std::min<std::uint64_t>(clusters, 0x7fffffffu);
  std::uint64_t stride = 2 + Random(seed).next() % (limit - 2);
  while (std::gcd(stride, clusters) != 1) ++stride;  // terminates at clusters - 1 at the latest
  return stride;
}

bool is_cooperative(const cudaLaunchConfig_t& config) {
  return std::any_of(config.attrs, config.attrs + config.numAttrs, [](const auto& attribute) {
    return attribute.id == cudaLaunchAttributeCooperative && attribute.val.cooperative != 0;
  });
}

dim3 cluster_of(const cudaLaunchConfig_t& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
    const auto& size = config.attrs[i].val.clusterDim;
    return {size.x, size.y, size.z};
  }
  return {};
}

}  // namespace

GridLaunch::GridLaunch(const cudaLaunchConfig_t& config, const detail::BoundKernel& bound,
                       const Settings& how)
    : grid(config.gridDim), block(config.blockDim), threads(block.x * block.y * block.z),
      shared_bytes(config.dynamicSmemBytes), kernel(bound), settings(how),
      blocks(std::uint64_t{grid.x} * grid.y * grid.z), cooperative(is_cooperative(config)),
      cluster(cluster_of(config)), cluster_blocks(cluster.x * cluster.y * cluster.z),
      clusters(blocks / cluster_blocks), stride_(shuffling_stride(clusters, how.seed)) {}

bool GridLaunch::take_cluster(std::uint64_t* index) {
  if (failed()) return false;
  const std::uint64_t turn = next_.fetch_add(1, std::memory_order_relaxed);
  if (turn >= clusters) return false;
  if (const auto seconds = ended_by_watchdog(launched_, turn, clusters)) {
    fail(cudaErrorLaunchTimeout, "The watchdog ended a launch: with it, all would take " +
                                     std::to_string(*seconds) + " s.");
    return false;
  }
  switch (settings.order) {
    case ThreadOrder::forward: *index = turn; break;
    case ThreadOrder::reverse: *index = clusters - 1 - turn; break;
    case ThreadOrder::shuffled:
      *index = (turn * stride_ + settings.seed % clusters) % clusters;
      break;
  }
  return true;
}

std::uint64_t GridLaunch::block_of(std::uint64_t cluster_index, unsigned rank) const {
  const std::uint64_t across = grid.x / cluster.x, down = grid.y / cluster.y;
  const std::uint64_t x = cluster_index % across * cluster.x + rank % cluster.x;
  const std::uint64_t y = cluster_index / across % down * cluster.y + rank / cluster.x % cluster.y;
  const std::uint64_t z = cluster_index / across / down * cluster.z + rank / cluster.x / cluster.y;
  return x + grid.x * (y + grid.y * z);
}

bool GridLaunch::block_arrives() {
  if (blocks_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < blocks) return false;
  blocks_arrived_.store(0, std::memory_order_relaxed);
  barrier_round_.fetch_add(1, std::memory_order_release);
  return true;
}

void GridLaunch::fail(cudaError_t error, const std::string& report) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  error_ = error;
  report_ = report;
  failed_.store(true, std::memory_order_release);
}

}  // namespace cuda_on_cpu
