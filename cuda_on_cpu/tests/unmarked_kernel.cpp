// A kernel that was not compiled by cuda_on_cpu_add_kernels(): its shared memory cannot be found.
#include "launch.hpp"

namespace {

__global__ void use_shared(float* out) {
  __shared__ float value;
  value = 1;
  *out = value;
}

}  // namespace

int main() {
  DeviceArray<float> out(1);
  return launch(use_shared, {1, 1}, out.data()) == cudaSuccess ? 0 : 1;
}
