// Run under AddressSanitizer and UndefinedBehaviorSanitizer: `correct` must end well, each other
// scenario plants one bug that must be reported.
#include <cstdio>
#include <string>

#include "kernels.hpp"
#include "launch.hpp"
#include "sanitized.hpp"

namespace {

bool run_correct() {
  DeviceArray<float> data(8);
  DeviceArray<int> in(std::vector<int>(8 * 256, 1)), sums(8);
  DeviceArray<float> floats(std::vector<float>(64, 1.0f)), reversed(64);
  bool good = launch(write_at, {1, 1}, data.data(), 7) == cudaSuccess;
  good &= launch(write_shared_at, {4, 32, 64}, 15) == cudaSuccess;
  good &= launch(write_shared_at, {4, 32, 32}, 7) == cudaSuccess;  // the size has changed
  good &= launch(write_shared_at, {4, 32, 128}, 31) == cudaSuccess;
  good &= launch(write_static_shared_at, {4, 32}, 3) == cudaSuccess;
  good &= launch(write_local_at, {4, 8}, data.data(), 3) == cudaSuccess;
  good &= launch(sum_float4, {1, 1}, data.data() + 4, data.data()) == cudaSuccess;
  good &= launch(reduce_tree, {8, 256}, in.data(), sums.data()) == cudaSuccess;
  good &= sums.host() == std::vector<int>(8, 256);
  good &= launch(reverse_lanes<float>, {1, 64}, floats.data(), reversed.data()) == cudaSuccess;
  // Errors unwind the threads, and leak nothing.
  good &= launch(barriers_at_two_lines, {3, 64}) == cudaErrorLaunchFailure;
  good &= launch(barrier_after_return, {3, 64}) == cudaErrorLaunchFailure;
  good &= launch(reduce_tree, {8, 256}, in.data(), sums.data()) == cudaSuccess;
  return good;
}

}  // namespace

int main(int, char** arguments) {
  const std::string scenario = arguments[1];
  DeviceArray<float> data(8);
  if (scenario == "correct") return run_correct() ? 0 : 1;
  if (scenario == "device_overrun") return launch(write_at, {1, 1}, data.data(), 8);
  if (scenario == "shared_overrun") return launch(write_shared_at, {1, 1, 32}, 8);
  if (scenario == "local_overrun") return launch(write_local_at, {1, 8}, data.data(), 4);
  if (scenario == "misaligned") return launch(sum_float4, {1, 1}, data.data() + 1, data.data());
  if (scenario == "static_overrun") return launch(write_static_shared_at, {1, 1}, 4);
  if (scenario == "after_free") {
    float* freed = nullptr;
    cudaMalloc(&freed, 4);
    cudaFree(freed);
    return launch(write_at, {1, 1}, freed, 0);
  }
  std::fprintf(stderr, "unknown scenario %s\n", scenario.c_str());
  return 2;
}
