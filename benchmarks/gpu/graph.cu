#include "benchmarks/gpu/graph.hpp"
#include "benchmarks/gpu/kernels.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::benchmarks {

void describe_kernel(const KernelLaunch& launch, Timing& timing) {
  cudaFuncAttributes attributes{};
  if (launch.kernel == nullptr ||
      cudaFuncGetAttributes(&attributes, launch.kernel) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return;
  }
  const int block = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  int blocks = 0, of_sm = 0;
  gpu::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch.kernel, block,
                                                           launch.shared_bytes));
  gpu::check(cudaDeviceGetAttribute(&of_sm, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
  timing.registers = attributes.numRegs;
  timing.shared_bytes = static_cast<int>(attributes.sharedSizeBytes + launch.shared_bytes);
  timing.spills = static_cast<int>(attributes.localSizeBytes);
  timing.occupancy = static_cast<double>(blocks) * block / of_sm;
}

Graph::Graph(const std::function<void()>& enqueue) {
  gpu::check(cudaStreamBeginCapture(rung_stream(), cudaStreamCaptureModeThreadLocal));
  try {
    enqueue();
  } catch (...) {
    // What was recorded until then goes; a forbidden call has made an end of the recording anyway.
    static_cast<void>(cudaStreamEndCapture(rung_stream(), &graph_));
    if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
    static_cast<void>(cudaGetLastError());
    throw;
  }
  gpu::check(cudaStreamEndCapture(rung_stream(), &graph_));
  gpu::check(cudaGraphInstantiate(&executable_, graph_, 0));
}

Graph::~Graph() {
  if (executable_ != nullptr) static_cast<void>(cudaGraphExecDestroy(executable_));
  if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
}

void Graph::launch() const { gpu::check(cudaGraphLaunch(executable_, rung_stream())); }

void Graph::describe(Timing& timing) const {
  std::size_t count = 0;
  gpu::check(cudaGraphGetNodes(graph_, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  gpu::check(cudaGraphGetNodes(graph_, nodes.data(), &count));
  KernelLaunch largest;
  timing.launches = 0;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    gpu::check(cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeKernel && type != cudaGraphNodeTypeMemcpy &&
        type != cudaGraphNodeTypeMemset) {
      continue;
    }
    ++timing.launches;
    cudaKernelNodeParams kernel{};
    cudaFuncAttributes attributes{};
    if (type != cudaGraphNodeTypeKernel ||
        cudaGraphKernelNodeGetParams(node, &kernel) != cudaSuccess ||
        cudaFuncGetAttributes(&attributes, kernel.func) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      continue;
    }
    const KernelLaunch launch{kernel.func, kernel.gridDim, kernel.blockDim, kernel.sharedMemBytes};
    if (launch.threads() > largest.threads()) largest = launch;
  }
  describe_kernel(largest, timing);
}

}  // namespace convladder::benchmarks
