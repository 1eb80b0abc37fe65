/// @file ptx_probe.cu
/// @brief The kernels of ptx_probe.hpp: one warp each.
#include "core/cuda/compute_capability.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/ptx.hpp"
#include "tests/ptx_probe.hpp"

namespace convladder::BACKEND::ptx_probe {
namespace {

constexpr int kRows = 32;  ///< Of 16 bytes, in shared memory.

__device__ int lane() { return static_cast<int>(threadIdx.x); }

__global__ void probe_ldmatrix(const std::uint32_t* rows, const std::uint32_t* first, int matrices,
                               std::uint32_t* out) {
  __shared__ __align__(16) std::uint32_t shared_rows[kRows * 4];
  for (int i = 0; i < 4; ++i) shared_rows[4 * lane() + i] = rows[4 * lane() + i];
  __syncthreads();  // separates these stores from the loads below
  const std::uint32_t* row = shared_rows + 4 * first[lane()];
  if (matrices == 4) {
    std::uint32_t fragment[4];
    ptx::ldmatrix_x4(fragment, row);
    for (int i = 0; i < 4; ++i) out[4 * lane() + i] = fragment[i];
  } else {
    std::uint32_t fragment[2];
    ptx::ldmatrix_x2(fragment, row);
    for (int i = 0; i < 2; ++i) out[2 * lane() + i] = fragment[i];
  }
}

__global__ void probe_mma(const std::uint32_t* a, const std::uint32_t* b, const float* d,
                          float* out) {
  std::uint32_t mine_a[4], mine_b[2];
  float mine_d[4];
  for (int i = 0; i < 4; ++i) mine_a[i] = a[4 * lane() + i];
  for (int i = 0; i < 2; ++i) mine_b[i] = b[2 * lane() + i];
  for (int i = 0; i < 4; ++i) mine_d[i] = d[4 * lane() + i];
  ptx::mma_m16n8k8_tf32(mine_d, mine_a, mine_b);
  for (int i = 0; i < 4; ++i) out[4 * lane() + i] = mine_d[i];
}

__global__ void probe_cvt(const float* values, std::uint32_t* out) {
  out[lane()] = ptx::to_tf32(values[lane()]);
}

/// A copy on the device.
template <class T>
DeviceArray<T> uploaded(const Registers& host) {
  static_assert(sizeof(T) == sizeof(std::uint32_t));
  DeviceArray<T> array(static_cast<std::int64_t>(host.size()));
  check(cudaMemcpy(array.data(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return array;
}

template <class T>
Registers registers_of(const DeviceArray<T>& array, std::size_t count) {
  Registers host(count);
  check(cudaMemcpy(host.data(), array.data(), count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

}  // namespace

bool has_tensor_cores() { return compute_capability() >= 80; }

Registers load_matrices(const Registers& rows, const Registers& first, int matrices) {
  const auto on_device = uploaded<std::uint32_t>(rows), lanes = uploaded<std::uint32_t>(first);
  const DeviceArray<std::uint32_t> out(32 * matrices);
  launch(probe_ldmatrix, {1, 32}, on_device.data(), lanes.data(), matrices, out.data());
  return registers_of(out, 32 * static_cast<std::size_t>(matrices));
}

Registers multiply(const Registers& a, const Registers& b, const Registers& d) {
  const auto on_device_a = uploaded<std::uint32_t>(a), on_device_b = uploaded<std::uint32_t>(b);
  const auto on_device_d = uploaded<float>(d);
  const DeviceArray<float> out(128);
  launch(probe_mma, {1, 32}, on_device_a.data(), on_device_b.data(), on_device_d.data(),
         out.data());
  return registers_of(out, 128);
}

Registers round_to_tf32(const Registers& values) {
  const auto on_device = uploaded<float>(values);
  const DeviceArray<std::uint32_t> out(32);
  launch(probe_cvt, {1, 32}, on_device.data(), out.data());
  return registers_of(out, 32);
}

}  // namespace convladder::BACKEND::ptx_probe
