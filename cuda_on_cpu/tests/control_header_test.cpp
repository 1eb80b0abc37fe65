// The control interface must declare no CUDA names: here they have another meaning.
#include <doctest/doctest.h>

#include <cuda_on_cpu/control.hpp>
#include <cuda_on_cpu/inspect.hpp>

namespace {

struct dim3 {};
struct float4 {};
int cudaMalloc(dim3, float4) { return 1; }
int threadIdx = 2;

}  // namespace

TEST_CASE("the control interface declares no CUDA names") {
  CHECK(cudaMalloc(dim3{}, float4{}) + threadIdx == 3);
  CHECK(cuda_on_cpu::control::worker_threads() >= 1);
  cuda_on_cpu::inspect::ThreadPosition position{};
  CHECK_FALSE(cuda_on_cpu::inspect::in_kernel(&position));
}
