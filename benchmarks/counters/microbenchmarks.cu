#include <cuda_pipeline.h>

#include "benchmarks/counters/microbenchmarks.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"

namespace convladder::benchmarks {
namespace {

using namespace BACKEND;  // launch() and ptx

template <class T>
__global__ void copy(const T* from, T* to, int offset, int stride) {
  to[threadIdx.x] = from[offset + static_cast<int>(threadIdx.x) * stride];
}

__global__ void scatter(const float* from, float* to, int stride) {
  to[static_cast<int>(threadIdx.x) * stride] = from[threadIdx.x];
}

/// Where a lane goes: lanes in groups of `per`, whose places are `far` apart; in a group, lanes are
/// `near` apart, and those that are `wrap` apart at one place.
struct Places {
  int per, far, near, wrap = 32;
  HOST_DEVICE int of(int lane) const { return lane / per * far + lane % per % wrap * near; }
};

/// Each lane stores one T in shared memory and loads it again, at its place. The barrier keeps the
/// compiler from handing on what it has just stored.
template <class T>
__global__ void shared_places(const T* from, T* to, Places places) {
  __shared__ T words[128];
  const int lane = static_cast<int>(threadIdx.x), place = places.of(lane);
  words[place] = from[lane];
  __syncthreads();
  to[lane] = words[place];
}

/// A square of 32 x 32 elements. A row begins `kPitch` elements behind the one before; if
/// `kSwizzled`, element j of row i stands in column j ^ i.
template <int kPitch, bool kSwizzled>
__global__ void transpose(const float* from, float* to) {
  __shared__ float square[32 * kPitch];
  const unsigned i = threadIdx.y, j = threadIdx.x;
  const unsigned swizzle = kSwizzled ? i ^ j : j, turned = kSwizzled ? i ^ j : i;
  square[i * kPitch + swizzle] = from[i * 32 + j];
  __syncthreads();
  to[i * 32 + j] = square[j * kPitch + turned];
}

/// As a look-up in a hash table: lane i looks at 1 + i % 4 places, and then waits for the others.
__global__ void probe(const float* table, float* to) {
  int place = static_cast<int>(threadIdx.x) * 8;
  const auto sought = static_cast<float>(threadIdx.x % 4);
  float looked = 1;
  while (table[place] != sought) {
    ++place;
    ++looked;
  }
  to[threadIdx.x] = looked;
}

__global__ void add(float* to, unsigned addresses) {
  atomicAdd(&to[threadIdx.x % addresses], 1.0f);
}

/// Each lane copies one T from its place in global memory to its place in shared memory.
template <class T>
__global__ void copy_async(const T* from, T* to, Places global, Places shared) {
  __shared__ T words[128];
  const int lane = static_cast<int>(threadIdx.x);
  __pipeline_memcpy_async(&words[shared.of(lane)], &from[global.of(lane)], sizeof(T));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  to[lane] = words[shared.of(lane)];
}

/// Four matrices, whose 32 rows begin `pitch` pieces of 16 bytes one behind the other.
__global__ void load_matrices(const float4* from, float4* to, int pitch) {
  __shared__ float4 rows[32 * 8];
  float4* const row = &rows[static_cast<int>(threadIdx.x) * pitch];
  *row = from[threadIdx.x];
  __syncthreads();
  std::uint32_t fragment[4];
  ptx::ldmatrix_x4(fragment, row);
  float4 loaded;
  loaded.x = __uint_as_float(fragment[0]);
  loaded.y = __uint_as_float(fragment[1]);
  loaded.z = __uint_as_float(fragment[2]);
  loaded.w = __uint_as_float(fragment[3]);
  to[threadIdx.x] = loaded;
}

__global__ void next_run() {}

template <class T, int kOffset, int kStride>
void run_copy(const float* from, float* to) {
  launch(copy<T>, {1, 32}, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), kOffset,
         kStride);
}

template <class T, int kPer, int kFar, int kNear, int kWrap = 32>
void run_places(const float* from, float* to) {
  launch(shared_places<T>, {1, 32}, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to),
         Places{kPer, kFar, kNear, kWrap});
}

template <int kPitch, bool kSwizzled>
void run_transpose(const float* from, float* to) {
  launch(transpose<kPitch, kSwizzled>, {1, dim3(32, 32)}, from, to);
}

template <unsigned kAddresses>
void run_add(const float*, float* to) {
  launch(add, {1, 32}, to, kAddresses);
}

/// @tparam kPer, kFar, kNear of the places in global memory
template <class T, int kPer = 32, int kFar = 0, int kNear = 1, int kSharedStride = 1>
void run_copy_async(const float* from, float* to) {
  launch(copy_async<T>, {1, 32}, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to),
         Places{kPer, kFar, kNear}, Places{1, kSharedStride, 0});
}

template <int kPitch>
void run_load_matrices(const float* from, float* to) {
  launch(load_matrices, {1, 32}, reinterpret_cast<const float4*>(from),
         reinterpret_cast<float4*>(to), kPitch);
}

}  // namespace

const std::vector<Microbenchmark>& microbenchmarks() {
  static const std::vector<Microbenchmark> all = {
      {"copy", run_copy<float, 0, 1>},
      {"copy, off by one float", run_copy<float, 1, 1>},
      {"load with stride 2", run_copy<float, 0, 2>},
      {"load with stride 4", run_copy<float, 0, 4>},
      {"load with stride 8", run_copy<float, 0, 8>},
      {"load with stride 16", run_copy<float, 0, 16>},
      {"load with stride 32", run_copy<float, 0, 32>},
      {"load of one address", run_copy<float, 0, 0>},
      {"store with stride 8",
       [](const float* from, float* to) {
         launch(scatter, {1, 32}, from, to, 8);
       }},
      {"float2 copy", run_copy<float2, 0, 1>},
      {"float4 copy", run_copy<float4, 0, 1>},
      {"float4 copy, off by 16 bytes", run_copy<float4, 1, 1>},
      {"transpose, pitch 32", run_transpose<32, false>},
      {"transpose, pitch 33", run_transpose<33, false>},
      {"transpose, swizzled", run_transpose<32, true>},
      {"hash probe",
       [](const float* from, float* to) {
         launch(probe, {1, 32}, from, to);
       }},
      {"atomics on 1 address", run_add<1>},
      {"atomics on 2 addresses", run_add<2>},
      {"atomics on 8 addresses", run_add<8>},
      {"atomics on 32 addresses", run_add<32>},
      {"cp.async of 4 bytes", run_copy_async<float>},
      {"cp.async of 16 bytes", run_copy_async<float4>},
      {"ldmatrix, rows side by side", run_load_matrices<1>},
      {"ldmatrix, rows 128 bytes apart", run_load_matrices<8>},
      // How turns of 4, 8 and 16 bytes a lane are made up.
      {"shared float, stride 2", run_places<float, 1, 2, 0>},
      {"shared float2", run_places<float2, 1, 1, 0>},
      {"shared float2, one address", run_places<float2, 1, 0, 0>},
      {"shared float2, pairs at one address", run_places<float2, 2, 1, 0>},
      {"shared float2, both halves alike", run_places<float2, 16, 0, 1>},
      {"shared float2, stride 2", run_places<float2, 1, 2, 0>},
      {"shared float2, halves interleaved", run_places<float2, 2, 1, 16>},
      {"shared float4", run_places<float4, 1, 1, 0>},
      {"shared float4, one address", run_places<float4, 1, 0, 0>},
      {"shared float4, pairs at one address", run_places<float4, 2, 1, 0>},
      {"shared float4, all quarters alike", run_places<float4, 8, 0, 1>},
      {"shared float4, stride 2", run_places<float4, 1, 2, 0>},
      {"shared float4, quarters interleaved", run_places<float4, 4, 1, 8>},
      {"shared float4, lanes 2 apart at one address", run_places<float4, 4, 2, 1, 2>},
      {"shared float4, fours at one address", run_places<float4, 4, 1, 0>},
      {"shared float4, eights at one address", run_places<float4, 8, 1, 0>},
      {"shared float4, halves at one address", run_places<float4, 16, 1, 0>},
      {"shared float4, all fours alike", run_places<float4, 4, 0, 1>},
      {"shared float4, all pairs alike", run_places<float4, 2, 0, 1>},
      {"shared float4, both halves alike", run_places<float4, 16, 0, 1>},
      {"shared float4, pairs alike in fours", run_places<float4, 4, 1, 1, 2>},
      {"shared float4, windows that overlap", run_places<float4, 8, 4, 1>},
      {"shared float4, fours 5 apart", run_places<float4, 4, 5, 1>},
      // How turns of asynchronous copies are made up.
      {"cp.async of 4 bytes, stride 2", run_copy_async<float, 1, 2, 0>},
      {"cp.async of 4 bytes, stride 32", run_copy_async<float, 1, 32, 0>},
      {"cp.async of 4 bytes, two rows", run_copy_async<float, 16, 64, 1>},
      {"cp.async of 4 bytes, four rows", run_copy_async<float, 8, 64, 1>},
      {"cp.async of 4 bytes, eight rows", run_copy_async<float, 4, 64, 1>},
      {"cp.async of 4 bytes, one address", run_copy_async<float, 32, 0, 0>},
      {"cp.async of 4 bytes, to stride 2", run_copy_async<float, 32, 0, 1, 2>},
      {"cp.async of 4 bytes, four rows to stride 4", run_copy_async<float, 8, 64, 1, 4>},
      {"cp.async of 8 bytes", run_copy_async<float2>},
      {"cp.async of 8 bytes, four rows", run_copy_async<float2, 8, 32, 1>},
      {"cp.async of 16 bytes, two rows", run_copy_async<float4, 16, 32, 1>},
      {"cp.async of 16 bytes, eight rows", run_copy_async<float4, 4, 16, 1>},
      {"cp.async of 16 bytes, sixteen rows", run_copy_async<float4, 2, 16, 1>},
      {"cp.async of 16 bytes, stride 8", run_copy_async<float4, 1, 8, 0>},
      {"cp.async of 16 bytes, one address", run_copy_async<float4, 32, 0, 0>},
      {"cp.async of 16 bytes, to stride 2", run_copy_async<float4, 32, 0, 1, 2>},
  };
  return all;
}

void begin_run() { launch(next_run, {1, 1}); }

}  // namespace convladder::benchmarks
