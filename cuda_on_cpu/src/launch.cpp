#include <algorithm>
#include <cuda_on_cpu/launch.hpp>
#include <string>

#include "device_arena.hpp"
#include "error_state.hpp"
#include "function_attributes.hpp"
#include "grid_launch.hpp"
#include "model_device.hpp"
#include "report_text.hpp"
#include "static_shared_registry.hpp"
#include "statistics.hpp"
#include "streams.hpp"
#include "symbol_name.hpp"
#include "watching.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {
namespace {

/// The reason why a launch is refused; `error` is cudaSuccess if it is not.
struct Refusal {
  cudaError_t error = cudaSuccess;
  std::string why;
};

Refusal check_shape(const dim3& grid, const dim3& block) {
  const unsigned grid_size[] = {grid.x, grid.y, grid.z};
  const unsigned block_size[] = {block.x, block.y, block.z};
  for (int axis = 0; axis < 3; ++axis) {
    const std::string name(1, static_cast<char>('x' + axis));
    const auto refuse = [&](const char* of, unsigned size, unsigned limit) -> Refusal {
      return {cudaErrorInvalidConfiguration, std::string(of) + "." + name + " is " +
                                                 std::to_string(size) + ", outside 1 to " +
                                                 std::to_string(limit)};
    };
    if (grid_size[axis] == 0 || grid_size[axis] > model::kGridDim[axis]) {
      return refuse("gridDim", grid_size[axis], model::kGridDim[axis]);
    }
    if (block_size[axis] == 0 || block_size[axis] > model::kBlockDim[axis]) {
      return refuse("blockDim", block_size[axis], model::kBlockDim[axis]);
    }
  }
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  if (threads > model::kThreadsPerBlock) {
    return {cudaErrorInvalidConfiguration, "a block of " + std::to_string(threads) +
                                               " threads is larger than " +
                                               std::to_string(model::kThreadsPerBlock)};
  }
  return {};
}

Refusal check_shared(std::size_t bytes, const void* function) {
  // The declared shared memory is determined only if it matters, because that takes milliseconds.
  if (bytes + largest_static_shared() <= control::device_model().shared_per_block ||
      bytes <= allowed_dynamic_shared(function)) {
    return {};
  }
  const std::size_t allowed = max_dynamic_shared(function);
  if (bytes <= allowed) return {};
  const std::size_t declared = declared_shared(function);
  return {
      cudaErrorInvalidValue,
      std::to_string(bytes) + " bytes of dynamic shared memory are more than the kernel may use, " +
          std::to_string(allowed) +
          (declared > 0 ? " beside the " + std::to_string(declared) + " that it declares" : "") +
          " (cudaFuncSetAttribute allows up to " +
          std::to_string(control::device_model().shared_per_block_optin() - declared) + " on " +
          control::device_model().architecture + ")"};
}

template <class Size>
Refusal check_cluster(const dim3& grid, const Size& cluster) {
  if (const control::DeviceModel& device = control::device_model(); !device.has_clusters())
    return {cudaErrorNotSupported, text_of_need("a cluster", "sm_90", device)};
  const unsigned blocks[] = {grid.x, grid.y, grid.z}, size[] = {cluster.x, cluster.y, cluster.z};
  std::size_t product = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const std::string name(1, static_cast<char>('x' + axis));
    if (size[axis] == 0 || blocks[axis] % size[axis] != 0) {
      return {cudaErrorInvalidClusterSize, "gridDim." + name + ", " + std::to_string(blocks[axis]) +
                                               ", is not a multiple of the cluster's, " +
                                               std::to_string(size[axis])};
    }
    product *= size[axis];
  }
  if (product > model::kClusterBlocks) {
    return {cudaErrorInvalidClusterSize, "a cluster of " + std::to_string(product) +
                                             " blocks is larger than " +
                                             std::to_string(model::kClusterBlocks)};
  }
  return {};
}

Refusal check_attributes(const cudaLaunchConfig_t& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case cudaLaunchAttributeClusterDimension: {
        if (Refusal r = check_cluster(config.gridDim, attribute.val.clusterDim);
            r.error != cudaSuccess) {
          return r;
        }
        break;
      }
      case cudaLaunchAttributeCooperative: {
        if (attribute.val.cooperative == 0) break;
        const dim3& g = config.gridDim;
        const dim3& b = config.blockDim;
        const std::size_t blocks = std::size_t{g.x} * g.y * g.z;
        const int blocks_per_sm = model::blocks_per_sm(b.x * b.y * b.z, config.dynamicSmemBytes);
        const std::size_t resident = static_cast<std::size_t>(model::multiprocessors()) *
                                     static_cast<unsigned>(blocks_per_sm);
        const auto waiting = static_cast<std::size_t>(
            control::most_waiting_blocks(static_cast<int>(b.x * b.y * b.z)));
        if (blocks <= std::min(resident, waiting)) break;
        return {cudaErrorCooperativeLaunchTooLarge,
                std::to_string(blocks) + " blocks cannot be resident at once, only " +
                    std::to_string(std::min(resident, waiting)) +
                    (waiting < resident ? " in cuda_on_cpu" : "")};
      }
      default: break;  // hints
    }
  }
  return {};
}

Refusal check(const cudaLaunchConfig_t& config, const void* function) {
  if (function == nullptr) return {cudaErrorInvalidDeviceFunction, "the kernel is null"};
  if (Refusal r = check_shape(config.gridDim, config.blockDim); r.error != cudaSuccess) return r;
  if (Refusal r = check_shared(config.dynamicSmemBytes, function); r.error != cudaSuccess) return r;
  return check_attributes(config);
}

}  // namespace

cudaError_t detail::launch(const cudaLaunchConfig_t& config, const BoundKernel& kernel) {
  static const bool layout_checked = (check_static_shared_layout(), true);
  static_cast<void>(layout_checked);

  if (const cudaError_t refused = check_stream(config.stream, "A launch"); refused != cudaSuccess) {
    return refused;
  }
  if (const Refusal refusal = check(config, kernel.function); refusal.error != cudaSuccess) {
    return remember(refusal.error, "The launch of " + function_name(kernel.function) +
                                       " is refused: " + refusal.why + ".");
  }
  GridLaunch grid(config, kernel, current_settings());
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Access access(arena);
  detail::tell_watcher([&](inspect::Watcher& watcher) {
    watcher.launch_begins({function_name(kernel.function),
                           {grid.grid.x, grid.grid.y, grid.grid.z},
                           {grid.block.x, grid.block.y, grid.block.z},
                           grid.shared_bytes});
  });
  WorkerPool::instance().run(grid);
  detail::tell_watcher([](inspect::Watcher& watcher) { watcher.launch_ended(); });
  count_launch(grid.blocks, grid.blocks * grid.threads);
  if (const std::string overrun = arena.check_guards(); !overrun.empty()) {
    grid.fail(cudaErrorIllegalAddress, "Kernel " + function_name(kernel.function) + ": " + overrun);
  }
  if (!grid.failed()) return cudaSuccess;
  return remember_kernel_error(grid.error(), grid.report());
}

}  // namespace cuda_on_cpu
