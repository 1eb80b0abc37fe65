#include <cuda_on_cpu/ptx.hpp>

#include "kernels.hpp"

namespace ptx = cuda_on_cpu::ptx;

namespace {

/// Common to all kernels in this file: a barrier, followed by the box.
struct Shared {
  std::uint64_t barrier;
  alignas(1024) float box[11 * 1024];
};

__device__ Shared& shared() { return *static_cast<Shared*>(cuda_on_cpu::dynamic_shared_memory()); }

__device__ void start(std::uint64_t* barrier, int bytes) {
  ptx::mbarrier_init(barrier, 1);
  ptx::fence_mbarrier_init();
  ptx::mbarrier_arrive_expect_tx(barrier, bytes);
}

/// All threads of the block.
__device__ void store_box(float* out, int floats) {
  for (int i = static_cast<int>(threadIdx.x); i < floats; i += static_cast<int>(blockDim.x)) {
    out[i] = shared().box[i];
  }
}

}  // namespace

template <int kRank>
__global__ void load_box(const __grid_constant__ CUtensorMap map, Coordinates at, int bytes,
                         int floats, float* out) {
  Shared& s = shared();
  if (threadIdx.x == 0) {
    start(&s.barrier, bytes);  // [expects]
    int coordinates[kRank];
    for (int i = 0; i < kRank; ++i) coordinates[i] = at.of[i];
    ptx::tma_load(s.box, &map, &s.barrier, coordinates);  // [tiled load]
  }
  __syncthreads();
  ptx::mbarrier_wait(&s.barrier, 0);  // [wait for box]
  store_box(out, floats);
}
template __global__ void load_box<1>(CUtensorMap, Coordinates, int, int, float*);
template __global__ void load_box<2>(CUtensorMap, Coordinates, int, int, float*);
template __global__ void load_box<3>(CUtensorMap, Coordinates, int, int, float*);
template __global__ void load_box<4>(CUtensorMap, Coordinates, int, int, float*);
template __global__ void load_box<5>(CUtensorMap, Coordinates, int, int, float*);

template <int kRank>
__global__ void load_columns(const __grid_constant__ CUtensorMap map, Coordinates at,
                             Coordinates offset, int bytes, int floats, float* out) {
  Shared& s = shared();
  if (threadIdx.x == 0) {
    start(&s.barrier, bytes);
    const auto by = [&](int i) { return static_cast<unsigned short>(offset.of[i]); };
    const int* const c = at.of;
    if constexpr (kRank == 3) {
      ptx::tma_load_im2col(s.box, &map, &s.barrier, c[0], c[1], c[2], by(0));
    } else if constexpr (kRank == 4) {
      ptx::tma_load_im2col(s.box, &map, &s.barrier, c[0], c[1], c[2], c[3], by(0),  // [im2col load]
                           by(1));
    } else {
      ptx::tma_load_im2col(s.box, &map, &s.barrier, c[0], c[1], c[2], c[3], c[4], by(0), by(1),
                           by(2));
    }
  }
  __syncthreads();
  ptx::mbarrier_wait(&s.barrier, 0);
  store_box(out, floats);
}
template __global__ void load_columns<3>(CUtensorMap, Coordinates, Coordinates, int, int, float*);
template __global__ void load_columns<4>(CUtensorMap, Coordinates, Coordinates, int, int, float*);
template __global__ void load_columns<5>(CUtensorMap, Coordinates, Coordinates, int, int, float*);

__global__ void store_to_array(const __grid_constant__ CUtensorMap map, Coordinates at, int floats,
                               BulkStore how) {
  Shared& s = shared();
  for (int i = static_cast<int>(threadIdx.x); i < floats; i += static_cast<int>(blockDim.x)) {
    s.box[i] = static_cast<float>(i + 1);
  }
  ptx::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::tma_store<2>(&map, s.box, {at.of[0], at.of[1]});  // [tiled store]
    ptx::cp_async_bulk_commit_group();
  }
  if (how == BulkStore::overwritten && threadIdx.x == 0) s.box[0] = 77;
  if (how == BulkStore::no_wait) return;
  if (how == BulkStore::others_wait && threadIdx.x == 0) return;
  ptx::cp_async_bulk_wait_group_read<0>();
}

__global__ void misuse_load(const __grid_constant__ CUtensorMap map, int how, float* out) {
  Shared& s = shared();
  constexpr int kBytes = 512;  // of the map's box
  const bool first = threadIdx.x == 0;
  if (first) {
    ptx::mbarrier_init(&s.barrier, how == 9 ? 2 : 1);
    if (how != 9)
      ptx::mbarrier_arrive_expect_tx(&s.barrier, how == 2   ? kBytes - 16
                                                 : how == 3 ? kBytes + 16
                                                            : kBytes);
    const int at[] = {how == 4 ? 2 : 0, 0};
    float* const to = how == 5 ? s.box + 4 : how == 6 ? s.box + 11 * 1024 - 32 : s.box;
    ptx::tma_load(to, &map, &s.barrier, at);  // [misused load]
    if (how == 9) {  // a load of the second phase, while the first one's is pending
      ptx::mbarrier_arrive_expect_tx(&s.barrier, kBytes);
      ptx::mbarrier_arrive(&s.barrier);
    }
  }
  __syncthreads();
  if (how == 1) ptx::mbarrier_wait(&s.barrier, 1);  // the other parity: returns at once
  if (how == 0 || how == 1) store_box(out, 128);
  __syncthreads();
  if (how == 7) return;
  ptx::mbarrier_wait(&s.barrier, 0);  // [late wait]
  if (how > 1) store_box(out, 128);
}
