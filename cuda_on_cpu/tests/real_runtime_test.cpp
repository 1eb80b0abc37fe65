// Represents an object that nvcc has compiled, and the real runtime: C functions and global types
// with CUDA's names. The test is that this program links and calls the right functions.
#include <doctest/doctest.h>

#include <cstddef>

struct dim3 {
  explicit dim3(int);
  int value;
};
dim3::dim3(int v) : value(v) {}

extern "C" {
int cudaMalloc(void**, std::size_t) { return 4711; }
int cudaFree(void*) { return 4712; }
int cudaMemcpy(void*, const void*, std::size_t, int) { return 4713; }
int cudaGetLastError() { return 4714; }
int cudaDeviceSynchronize() { return 4715; }
int cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, void*) { return 4716; }
int cudaLaunchKernelExC(const void*, const void*, void**) { return 4717; }
}

TEST_CASE("the real CUDA runtime can be linked into the same program") {
  CHECK(cudaMalloc(nullptr, 1) == 4711);
  CHECK(cudaGetLastError() == 4714);
  CHECK(dim3(3).value == 3);
}
