#include "benchmarks/gpu/kernels.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::benchmarks {
namespace {

constexpr int kThreads = 256;
constexpr int kChains = 16;   // independent sums a thread: more than a multiply-add's latency needs
constexpr int kSteps = 4096;  // multiply-adds of each
constexpr int kFmaBlocks = 132 * 8;

__global__ void copy(float4* to, const float4* from, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

__global__ __launch_bounds__(kThreads) void multiply_add(float* unused, float factor) {
  float sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = static_cast<float>(threadIdx.x + i);
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) sum[i] = fmaf(sum[i], factor, 1.0f);
  }
  float total = 0;
  for (int i = 0; i < kChains; ++i) total += sum[i];
  if (total == 1.2345f) *unused = total;  // never: keeps the compiler from leaving all of it out
}

template <class Word>
__global__ void count_unwritten(const Word* words, std::int64_t count,
                                unsigned long long* unwritten) {
  unsigned long long mine = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    mine += words[i] == static_cast<Word>(~0u) ? 1 : 0;
  }
  if (mine != 0) atomicAdd(unwritten, mine);
}

__global__ void count_different(const unsigned* a, const unsigned* b, std::int64_t count,
                                unsigned long long* different) {
  unsigned long long mine = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    mine += a[i] != b[i] ? 1 : 0;
  }
  if (mine != 0) atomicAdd(different, mine);
}

template <class Word>
__global__ void gather(const Word* from, const std::int64_t* places, std::int64_t count, Word* to) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[places[i]];
}

}  // namespace

void launch_copy(void* to, const void* from, std::int64_t bytes) {
  gpu::launch(copy, {gpu::blocks_for(bytes / 16, kThreads), kThreads}, static_cast<float4*>(to),
              static_cast<const float4*>(from), bytes / 16);
}

double launch_fma(float* unused) {
  gpu::launch(multiply_add, {kFmaBlocks, kThreads}, unused, 1.0001f);
  return 2.0 * kChains * kSteps * kFmaBlocks * kThreads;
}

void launch_count_unwritten(const void* elements, std::size_t size, std::int64_t count,
                            unsigned long long* unwritten) {
  const gpu::LaunchConfig shape{gpu::blocks_for(count, kThreads, 4096), kThreads};
  if (size == 2) {
    gpu::launch(count_unwritten<unsigned short>, shape,
                static_cast<const unsigned short*>(elements), count, unwritten);
  } else {
    gpu::launch(count_unwritten<unsigned>, shape, static_cast<const unsigned*>(elements), count,
                unwritten);
  }
}

void launch_count_different(const void* a, const void* b, std::int64_t count,
                            unsigned long long* different) {
  gpu::launch(count_different, {gpu::blocks_for(count, kThreads, 4096), kThreads},
              static_cast<const unsigned*>(a), static_cast<const unsigned*>(b), count, different);
}

void launch_gather(const void* from, std::size_t size, const std::int64_t* places,
                   std::int64_t count, void* to) {
  const gpu::LaunchConfig shape{gpu::blocks_for(count, kThreads), kThreads};
  if (size == 2) {
    gpu::launch(gather<unsigned short>, shape, static_cast<const unsigned short*>(from), places,
                count, static_cast<unsigned short*>(to));
  } else {
    gpu::launch(gather<unsigned>, shape, static_cast<const unsigned*>(from), places, count,
                static_cast<unsigned*>(to));
  }
}

}  // namespace convladder::benchmarks
