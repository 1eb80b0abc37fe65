// Kernels with known requests: the expected counts are exact.
#include <cuda.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cuda_on_cpu/ptx.hpp>

#include "microscope.hpp"

namespace ptx = cuda_on_cpu::ptx;

namespace {

__global__ void copy(const float* from, float* to, int offset, int stride) {
  const int i = static_cast<int>(threadIdx.x);
  to[i] = from[offset + i * stride];
}

__global__ void copy_fours(const float4* from, float4* to) { to[threadIdx.x] = from[threadIdx.x]; }

__global__ void shared_stride(float* to, int stride) {
  __shared__ float tile[32 * 33];
  tile[threadIdx.x * stride] = 1.0f;
  to[threadIdx.x] = tile[threadIdx.x * stride];
}

/// In groups of `group`, lanes that are `apart` from each other load the same T; each stores to its
/// own location.
template <class T>
__global__ void shared_wide(float* to, int group, int apart) {
  __shared__ T line[32];
  line[threadIdx.x] = T{};
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x);
  const T loaded = line[lane / group * apart + lane % group % apart];
  to[threadIdx.x] = loaded.x;
}

/// Every fourth lane accesses 16 bytes, contiguous with those of the other active lanes.
__global__ void shared_few(float* to) {
  __shared__ float4 few[8];
  const unsigned lane = threadIdx.x;
  if (lane % 4 == 0) few[lane / 4] = float4{};
  if (lane % 4 == 0) to[lane] = few[lane / 4].x;
}

/// Each of two warps sums 8 neighbours in its row, twice, and optionally stores or copies to the
/// row in between.
template <int kPitch>
__global__ void add_neighbours(const float* from, float* to, Between between) {
  __shared__ float rows[2][kPitch];
  const unsigned lane = threadIdx.x, row = threadIdx.y;
  rows[row][lane] = 1.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < 8; ++i) sum += rows[row][i];
  if (between == Between::store) rows[row][32 + lane] = sum;
  if (between == Between::copy) __pipeline_memcpy_async(&rows[row][32 + lane], &from[lane], 4);
  for (int i = 0; i < 8; ++i) sum += rows[row][i];
  to[row * 32 + lane] = sum;
}

template <int kPitch>
__global__ void transpose(const float* from, float* to) {
  __shared__ float square[32][kPitch];
  square[threadIdx.y][threadIdx.x] = from[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  to[threadIdx.y * 32 + threadIdx.x] = square[threadIdx.x][threadIdx.y];
}

/// Lane i reads 1 + i % 4 locations: lanes leave the loop one after another.
__global__ void probe(const int* table, int* to) {
  int place = static_cast<int>(threadIdx.x) * 8, looked = 0;
  while (true) {
    ++looked;
    if (table[place] == 1) break;
    place += 1;
  }
  to[threadIdx.x] = looked;
}

/// Defined after the kernel that calls it, so that its code is placed there, too.
__device__ int place_of(const int* table, int from);

/// Odd lanes skip the body in every iteration: all lanes still store together.
__global__ void look_up(const int* table, int* to) {
  for (int i = 0; i < 4; ++i) {
    const int place =
        threadIdx.x % 2 == 0 ? place_of(table, static_cast<int>(threadIdx.x) * 8) : -1;
    to[32 * i + static_cast<int>(threadIdx.x)] = place;
  }
}

__device__ int place_of(const int* table, int from) {
  int place = from;
  while (table[place] != 1) ++place;
  return place;
}

__global__ void skip_odd(const float* from, float* to) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    if ((i + threadIdx.x) % 2 == 1) continue;
    sum += from[32 * i + threadIdx.x];
  }
  to[threadIdx.x] = sum;
}

__global__ void add(float* to, int addresses) { atomicAdd(&to[threadIdx.x % addresses], 1.0f); }

__global__ void neighbours(float* to, bool barrier) {
  __shared__ float line[64];
  line[threadIdx.x] = 1.0f;
  if (barrier) __syncthreads();
  to[threadIdx.x] = line[63 - threadIdx.x];
}

__global__ void lanes_exchange(float* to, bool meet) {
  __shared__ float line[32];
  line[threadIdx.x] = 1.0f;
  if (meet) __syncwarp();
  to[threadIdx.x] = line[31 - threadIdx.x];
}

__global__ void blocks_store(float* to) { to[0] = static_cast<float>(blockIdx.x + threadIdx.x); }

__global__ void all_store_one(float* to) { to[0] = 1.0f; }

__global__ void never_written(float* to) {
  __shared__ float line[33];
  line[threadIdx.x] = 1.0f;
  __syncthreads();
  to[threadIdx.x] = line[threadIdx.x + 1];
}

__global__ void pipeline(const float* from, float* to, int read, bool wait) {
  __shared__ float line[32];
  // Lanes from `read` on read nothing: they fill in zeros.
  const std::size_t zeros = static_cast<int>(threadIdx.x) < read ? 0 : 4;
  __pipeline_memcpy_async(&line[threadIdx.x], &from[threadIdx.x], 4, zeros);
  __pipeline_commit();
  if (wait) __pipeline_wait_prior(0);
  to[threadIdx.x] = line[threadIdx.x];
}

/// Groups of four from `offset` on.
__global__ void pipeline_fours(const float4* from, float* to, int offset) {
  __shared__ float4 line[32];
  __pipeline_memcpy_async(&line[threadIdx.x], &from[offset + static_cast<int>(threadIdx.x)], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  to[threadIdx.x] = line[threadIdx.x].x;
}

/// Blocks of a cluster exchange a number through global memory.
__global__ void tell_in_cluster(float* to, bool releases) {
  const unsigned me = blockIdx.x;
  if (threadIdx.x == 0) to[me] = 1.0f;
  __syncthreads();
  releases ? ptx::barrier_cluster_arrive() : ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
  if (threadIdx.x == 32) to[2 + me] = to[me ^ 1];
}

/// Two blocks share the data that each loads, twice. @param waits for the other block's reads, too
__global__ void share_in_cluster(const __grid_constant__ CUtensorMap map, float* to, bool waits) {
  __shared__ std::uint64_t full, empty;
  float* const stage = static_cast<float*>(cuda_on_cpu::dynamic_shared_memory());
  const unsigned rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init(&empty, 2);
  }
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
  for (unsigned round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) {
      if (waits) ptx::mbarrier_wait(&empty, round ^ 1);
      ptx::mbarrier_arrive_expect_tx(&full, 256);
      ptx::tma_load_multicast(stage + rank * 32, &map, &full, {0, static_cast<int>(rank)}, 3);
    }
    ptx::mbarrier_wait(&full, round);
    to[round * 32 + threadIdx.x] = stage[threadIdx.x] + stage[32 + threadIdx.x];
    __syncwarp();
    if (threadIdx.x < 2) ptx::mbarrier_arrive_relaxed(ptx::mapa(&empty, threadIdx.x));
  }
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
}

/// Two blocks exchange four numbers per thread, twice. @param waits for the other block's reads,
/// too
/// @param early reads them before they have arrived
__global__ void exchange_in_cluster(float* to, bool waits, bool early) {
  __shared__ std::uint64_t full, empty;
  float4* const parts = static_cast<float4*>(cuda_on_cpu::dynamic_shared_memory());
  const unsigned rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init(&empty, 64);
  }
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
  for (unsigned round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_tx(&full, 1024);
    if (waits) ptx::mbarrier_wait(&empty, round ^ 1);
    __syncwarp();
    for (unsigned i = 0; i < 2; ++i) {
      ptx::st_async(ptx::mapa(parts + rank * 32 + threadIdx.x, i), {1.0f, 2.0f, 3.0f, 4.0f},
                    ptx::mapa(&full, i));
    }
    if (early) to[threadIdx.x] = parts[threadIdx.x ^ 1].x;
    ptx::mbarrier_wait(&full, round);
    to[blockIdx.x * 32 + threadIdx.x] = parts[threadIdx.x].x + parts[32 + (threadIdx.x ^ 1)].y;
    for (unsigned i = 0; i < 2; ++i) ptx::mbarrier_arrive_relaxed(ptx::mapa(&empty, i));
  }
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
}

__constant__ float factors[32];
constexpr float kFactors[32] = {1, 2, 3};

/// The first is memory of the device, the second the program's own.
__global__ void multiply(float* to) {
  to[threadIdx.x] = factors[threadIdx.x] * kFactors[threadIdx.x % 3];
}

template <class... Params, class... Args>
void launch_pair(void (*kernel)(Params...), dim3 block, std::size_t shared_bytes, Args... args) {
  cudaLaunchAttribute attribute{cudaLaunchAttributeClusterDimension, {}};
  attribute.val.clusterDim = {2, 1, 1};
  const cudaLaunchConfig_t config{2, block, shared_bytes, nullptr, &attribute, 1};
  cudaLaunchKernelEx(&config, kernel, args...);
}

template <class... Params, class... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, Args... args) {
  const cudaLaunchConfig_t config{grid, block, 0, nullptr, nullptr, 0};
  cudaLaunchKernelEx(&config, kernel, args...);
}

}  // namespace

void run_copy(const float* from, float* to, int offset, int stride) {
  launch(copy, 1, 32, from, to, offset, stride);
}
void run_copy_fours(const float* from, float* to) {
  launch(copy_fours, 1, 32, reinterpret_cast<const float4*>(from), reinterpret_cast<float4*>(to));
}
void run_shared_stride(float* to, int stride) { launch(shared_stride, 1, 32, to, stride); }
void run_shared_wide(float* to, int bytes, int group, int apart) {
  launch(bytes == 8 ? shared_wide<float2> : shared_wide<float4>, 1, 32, to, group, apart);
}
void run_shared_few(float* to) { launch(shared_few, 1, 32, to); }
void run_add_neighbours(const float* from, float* to, bool padded, Between between) {
  launch(padded ? add_neighbours<65> : add_neighbours<64>, 1, dim3(32, 2), from, to, between);
}
void run_transpose(const float* from, float* to, bool padded) {
  launch(padded ? transpose<33> : transpose<32>, 1, dim3(32, 32), from, to);
}
void run_probe(const int* table, int* to) { launch(probe, 1, 32, table, to); }
void run_look_up(const int* table, int* to) { launch(look_up, 1, 32, table, to); }
void run_skip_odd(const float* from, float* to) { launch(skip_odd, 1, 32, from, to); }
void run_add(float* to, int addresses) { launch(add, 1, 32, to, addresses); }
void run_neighbours(float* to, bool barrier) { launch(neighbours, 1, 64, to, barrier); }
void run_lanes_exchange(float* to, bool meet) { launch(lanes_exchange, 1, 32, to, meet); }
void run_blocks_store(float* to) { launch(blocks_store, 2, 1, to); }
void run_all_store_one(float* to) { launch(all_store_one, 2, 32, to); }
void run_never_written(float* to) { launch(never_written, 1, 32, to); }
void run_pipeline(const float* from, float* to, int read, bool wait) {
  launch(pipeline, 1, 32, from, to, read, wait);
}
void run_pipeline_fours(const float* from, float* to, int offset) {
  launch(pipeline_fours, 1, 32, reinterpret_cast<const float4*>(from), to, offset);
}
void run_multiply(float* to) { launch(multiply, 1, 32, to); }
void run_tell_in_cluster(float* to, bool releases) {
  launch_pair(tell_in_cluster, 64, 0, to, releases);
}
void run_exchange_in_cluster(float* to, bool waits, bool early) {
  launch_pair(exchange_in_cluster, 32, 1024, to, waits, early);
}
void run_share_in_cluster(const float* from, float* to, bool waits) {
  const cuuint64_t dims[] = {32, 2}, strides[] = {128};
  const cuuint32_t box[] = {32, 1}, steps[] = {1, 1};
  CUtensorMap map;
  cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(from), dims,
                         strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  launch_pair(share_in_cluster, 32, 256, map, to, waits);
}
