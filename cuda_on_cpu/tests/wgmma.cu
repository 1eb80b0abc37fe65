#include <cuda_on_cpu/ptx.hpp>

#include "kernels.hpp"

namespace ptx = cuda_on_cpu::ptx;

namespace {

__device__ unsigned char* shared() {
  return static_cast<unsigned char*>(cuda_on_cpu::dynamic_shared_memory());
}

__device__ void fill_shared(const float* image, int floats) {
  float* const to = reinterpret_cast<float*>(shared());
  for (int i = static_cast<int>(threadIdx.x); i < floats; i += static_cast<int>(blockDim.x)) {
    to[i] = image[i];
  }
  ptx::fence_proxy_async();
  __syncthreads();
}

}  // namespace

template <int kN, WgmmaNumbers kType>
__global__ void multiply_in_warpgroup(const float* image, int floats, WgmmaFactor a, WgmmaFactor b,
                                      int steps, bool accumulate, float* d) {
  fill_shared(image, floats);
  const auto descriptor = [](const WgmmaFactor& f) {
    return ptx::wgmma_descriptor(shared() + f.begin, f.leading, f.stride, f.swizzle);
  };
  const std::uint64_t at_a = descriptor(a), at_b = descriptor(b);
  // The position of a thread's elements in d [64][kN].
  const unsigned warp = threadIdx.x / 32 % 4, group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
  const auto at = [=](unsigned i) {
    return (16 * warp + group + i / 2 % 2 * 8) * kN + i / 4 * 8 + 2 * place + i % 2;
  };
  d += threadIdx.x / 128 * 64 * kN;
  float sums[kN / 2];
  for (unsigned i = 0; i < kN / 2; ++i) sums[i] = d[at(i)];
  ptx::wgmma_fence();
  for (int step = 0; step < steps; ++step) {
    const auto next = static_cast<std::uint64_t>(step * 32 / 16);
    const bool add = accumulate || step > 0;
    if constexpr (kType == WgmmaNumbers::tf32) {
      ptx::wgmma_m64k8_tf32<kN>(sums, at_a + next, at_b + next, add);
    } else if constexpr (kType == WgmmaNumbers::f16) {
      ptx::wgmma_m64k16_f16<kN>(sums, at_a + next, at_b + next, add);
    } else if constexpr (kType == WgmmaNumbers::e4m3) {
      ptx::wgmma_m64k32_e4m3<kN>(sums, at_a + next, at_b + next, add);
    } else {
      ptx::wgmma_m64k16_bf16<kN>(sums, at_a + next, at_b + next, add);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
  }
  ptx::wgmma_wait_group<0>();
  for (unsigned i = 0; i < kN / 2; ++i) d[at(i)] = sums[i];
}
template __global__ void multiply_in_warpgroup<8, WgmmaNumbers::tf32>(const float*, int,
                                                                      WgmmaFactor, WgmmaFactor, int,
                                                                      bool, float*);
template __global__ void multiply_in_warpgroup<64, WgmmaNumbers::tf32>(const float*, int,
                                                                       WgmmaFactor, WgmmaFactor,
                                                                       int, bool, float*);
template __global__ void multiply_in_warpgroup<256, WgmmaNumbers::tf32>(const float*, int,
                                                                        WgmmaFactor, WgmmaFactor,
                                                                        int, bool, float*);
template __global__ void multiply_in_warpgroup<8, WgmmaNumbers::f16>(const float*, int, WgmmaFactor,
                                                                     WgmmaFactor, int, bool,
                                                                     float*);
template __global__ void multiply_in_warpgroup<64, WgmmaNumbers::f16>(const float*, int,
                                                                      WgmmaFactor, WgmmaFactor, int,
                                                                      bool, float*);
template __global__ void multiply_in_warpgroup<64, WgmmaNumbers::e4m3>(const float*, int,
                                                                       WgmmaFactor, WgmmaFactor,
                                                                       int, bool, float*);
template __global__ void multiply_in_warpgroup<256, WgmmaNumbers::bf16>(const float*, int,
                                                                        WgmmaFactor, WgmmaFactor,
                                                                        int, bool, float*);

__global__ void multiply_registers(const float* image, int floats, WgmmaFactor b, int steps,
                                   RegistersMisuse how, float* d) {
  fill_shared(image, floats);
  const std::uint64_t at_b =
      ptx::wgmma_descriptor(shared() + b.begin, b.leading, b.stride, b.swizzle);
  const unsigned warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
  const auto at = [=](unsigned i) {
    return (16 * warp + group + i / 2 % 2 * 8) * 64 + i / 4 * 8 + 2 * place + i % 2;
  };
  float sums[32];
  for (unsigned i = 0; i < 32; ++i) sums[i] = d[at(i)];
  std::uint32_t a[2][4];
  for (int step = 0; step < steps; ++step) {
    std::uint32_t(&mine)[4] = a[step % 2];
    ptx::wgmma_wait_group<1>();
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = 16 * warp + group + i % 2 * 8, k = place + i / 2 * 4;
      mine[i] = reinterpret_cast<const std::uint32_t*>(shared())[row * 32 + 8 * step + k];
    }
    if (how != RegistersMisuse::no_fence || step == 0) ptx::wgmma_fence();
    const std::uint64_t next_b = at_b + static_cast<std::uint64_t>(step * 32 / 16);
    ptx::wgmma_m64k8_tf32<64>(sums, mine, next_b, true);  // [wgmma of registers]
    ptx::wgmma_commit_group();
    if (how == RegistersMisuse::overwritten && step == 1) a[0][2] += threadIdx.x == 37;
  }
  ptx::wgmma_wait_group<0>();
  for (unsigned i = 0; i < 32; ++i) d[at(i)] = sums[i];
}

__global__ void misuse_wgmma(const float* image, WgmmaMisuse how, float* out) {
  fill_shared(image, 64 * 32);
  const unsigned thread = threadIdx.x;
  if (how == WgmmaMisuse::few_threads && thread >= 100) return;
  float sums[4] = {1, 1, 1, 1};
  std::uint64_t a = ptx::wgmma_descriptor(shared(), 16, 1024, 128), b = a;
  if (how == WgmmaMisuse::beyond_shared) a += 64;
  if (how != WgmmaMisuse::no_fence) ptx::wgmma_fence();
  if (how == WgmmaMisuse::other_factor && thread == 77) b += 2;
  ptx::wgmma_m64k8_tf32<8>(sums, a, b, false);  // [misused wgmma]
  if (how != WgmmaMisuse::no_commit) ptx::wgmma_commit_group();
  if (how == WgmmaMisuse::overwritten_factor) {
    if (thread == 5) reinterpret_cast<float*>(shared())[36] = 7;
    __syncthreads();
  }
  if (how == WgmmaMisuse::touched_sums && thread == 9) sums[2] = 0;
  if (how == WgmmaMisuse::weak_wait) {
    ptx::wgmma_wait_group<1>();
  } else if (how != WgmmaMisuse::no_wait && how != WgmmaMisuse::late_wait) {
    ptx::wgmma_wait_group<0>();  // [wgmma wait]
  }
  for (unsigned i = 0; i < 4; ++i) out[4 * thread + i] = sums[i];
  if (how == WgmmaMisuse::late_wait) ptx::wgmma_wait_group<0>();
}
