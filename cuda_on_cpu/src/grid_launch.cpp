#include "grid_launch.hpp"

#include <algorithm>
#include <numeric>

#include "random.hpp"

namespace cuda_on_cpu {
namespace {

using control::ThreadOrder;

/// A step coprime to `blocks`, so that walking by it visits every block once; not 1 if there is
/// another.
std::uint64_t shuffling_stride(std::uint64_t blocks, std::uint64_t seed) {
  if (blocks < 3) return 1;
  // Below 2^31, or the product in take_block() could overflow for the largest grids.
  const std::uint64_t limit = std::min<std::uint64_t>(blocks, 0x7fffffffu);
  std::uint64_t stride = 2 + Random(seed).next() % (limit - 2);
  while (std::gcd(stride, blocks) != 1) ++stride;  // ends at blocks - 1 at the latest
  return stride;
}

bool is_cooperative(const cudaLaunchConfig_t& config) {
  return std::any_of(config.attrs, config.attrs + config.numAttrs, [](const auto& attribute) {
    return attribute.id == cudaLaunchAttributeCooperative && attribute.val.cooperative != 0;
  });
}

}  // namespace

GridLaunch::GridLaunch(const cudaLaunchConfig_t& config, const detail::BoundKernel& bound,
                       const Settings& how)
    : grid(config.gridDim), block(config.blockDim), threads(block.x * block.y * block.z),
      shared_bytes(config.dynamicSmemBytes), kernel(bound), settings(how),
      blocks(std::uint64_t{grid.x} * grid.y * grid.z), cooperative(is_cooperative(config)),
      stride_(shuffling_stride(blocks, how.seed)) {}

bool GridLaunch::take_block(std::uint64_t* index) {
  if (failed()) return false;
  const std::uint64_t turn = next_.fetch_add(1, std::memory_order_relaxed);
  if (turn >= blocks) return false;
  switch (settings.order) {
    case ThreadOrder::forward: *index = turn; break;
    case ThreadOrder::reverse: *index = blocks - 1 - turn; break;
    case ThreadOrder::shuffled: *index = (turn * stride_ + settings.seed % blocks) % blocks; break;
  }
  return true;
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
