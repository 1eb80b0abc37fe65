// A kernel under the microscope: the memory requests of its warp, counted without a GPU.
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda_on_cpu/microscope.hpp>

namespace microscope = cuda_on_cpu::microscope;

__global__ void take_every_other(const float* from, float* to) {
  to[threadIdx.x] = from[2 * threadIdx.x];
}

int main() {
  microscope::Microscope lens({});
  void *from = nullptr, *to = nullptr;
  cudaMalloc(&from, 64 * sizeof(float));
  cudaMalloc(&to, 32 * sizeof(float));
  cudaMemset(from, 0, 64 * sizeof(float));
  lens.name_array(from, 64 * sizeof(float), sizeof(float), "from");
  lens.name_array(to, 32 * sizeof(float), sizeof(float), "to");

  const cudaLaunchConfig_t one_warp{dim3(1), dim3(32), 0, nullptr, nullptr, 0};
  cudaLaunchKernelEx(&one_warp, take_every_other, static_cast<const float*>(from),
                     static_cast<float*>(to));
  const auto seen = lens.report();
  for (const auto& line : seen.kernels.at(0).lines) {
    std::printf("line %u: %s of %s, %g sectors a request\n", line.line,
                microscope::name_of(line.operation), line.array.c_str(),
                double(line.counts.sectors) / double(line.counts.requests));
  }
}
