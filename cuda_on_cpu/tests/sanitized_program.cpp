// Run under AddressSanitizer and UndefinedBehaviorSanitizer: `correct` must succeed; each other
// scenario plants one bug that must be reported.
#include <cstdio>
#include <string>

#include "kernels.hpp"
#include "launch.hpp"
#include "sanitized.hpp"

namespace {

/// Loads a box that extends beyond all sides of an array that fills its allocation.
bool load_tensor(const DeviceArray<float>& array) {
  const cuuint64_t dims[] = {32, 64}, strides[] = {128};
  const cuuint32_t box[] = {32, 80}, steps[] = {1, 1};
  CUtensorMap map;
  if (cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, array.data(), dims, strides,
                             box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE,
                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
    return false;
  }
  DeviceArray<float> out(32 * 80);
  const Shape shape{1, 64, 46 * 1024};
  for (const Coordinates at : {Coordinates{{-4, -8}}, Coordinates{{4, 8}}}) {
    if (launch(load_box<2>, shape, map, at, 32 * 80 * 4, 32 * 80, out.data()) != cudaSuccess) {
      return false;
    }
  }
  return true;
}

bool run_correct() {
  DeviceArray<float> data(8);
  DeviceArray<int> in(std::vector<int>(8 * 256, 1)), sums(8), out(320);
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
  good &= launch(pass_through_ring, {2, 64}, in.data(), out.data(), 10) == cudaSuccess;
  DeviceArray<int> flags(8), seen(8 * 3);
  good &=
      launch_in_clusters(4, meet_in_clusters, {8, 64}, flags.data(), seen.data(), 3) == cudaSuccess;
  good &= launch_in_clusters(2, misuse_cluster, {4, 32}, ClusterMisuse::none) == cudaSuccess;
  DeviceArray<float> image(std::vector<float>(64 * 32, 1.0f)), sums_of_products(512);
  const Shape warpgroup{1, 128, 64 * 128};
  good &= launch(misuse_wgmma, warpgroup, image.data(), WgmmaMisuse::none,
                 sums_of_products.data()) == cudaSuccess;
  // Errors unwind the threads without leaks.
  good &= launch(misuse_wgmma, warpgroup, image.data(), WgmmaMisuse::no_wait,
                 sums_of_products.data()) == cudaErrorLaunchFailure;
  good &= launch(misuse_wgmma, warpgroup, image.data(), WgmmaMisuse::few_threads,
                 sums_of_products.data()) == cudaErrorLaunchFailure;
  good &= launch(wait_in_vain, {2, 32}, 33) == cudaErrorLaunchFailure;
  good &= launch_in_clusters(2, misuse_cluster, {4, 32}, ClusterMisuse::in_vain) ==
          cudaErrorLaunchFailure;
  good &= launch(barriers_at_two_lines, {3, 64}) == cudaErrorLaunchFailure;
  good &= launch(barrier_after_return, {3, 64}) == cudaErrorLaunchFailure;
  good &= launch(reduce_tree, {8, 256}, in.data(), sums.data()) == cudaSuccess;
  return good && load_tensor(image);
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
