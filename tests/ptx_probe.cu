/// @file ptx_probe.cu
/// @brief The kernels of ptx_probe.hpp: one warp each, or one warpgroup.
#include <algorithm>

#include "core/cuda/cluster.hpp"
#include "core/cuda/cooperative.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/early_launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/text.hpp"
#include "tests/ptx_probe.hpp"

namespace convladder::BACKEND::ptx_probe {
namespace {

constexpr int kRows = 32;  ///< Of 16 bytes, in shared memory.

__device__ int lane() { return static_cast<int>(threadIdx.x); }

__global__ void probe_ldmatrix(const std::uint32_t* rows, const std::uint32_t* first, int matrices,
                               bool transposed, std::uint32_t* out) {
  __shared__ __align__(16) std::uint32_t shared_rows[kRows * 4];
  for (int i = 0; i < 4; ++i) shared_rows[4 * lane() + i] = rows[4 * lane() + i];
  __syncthreads();  // separates these stores from the loads below
  const std::uint32_t* row = shared_rows + 4 * first[lane()];
  if (matrices == 4) {
    std::uint32_t fragment[4];
    if (transposed) {
      ptx::ldmatrix_x4_trans(fragment, row);
    } else {
      ptx::ldmatrix_x4(fragment, row);
    }
    for (int i = 0; i < 4; ++i) out[4 * lane() + i] = fragment[i];
  } else {
    std::uint32_t fragment[2];
    if (transposed) {
      ptx::ldmatrix_x2_trans(fragment, row);
    } else {
      ptx::ldmatrix_x2(fragment, row);
    }
    for (int i = 0; i < 2; ++i) out[2 * lane() + i] = fragment[i];
  }
}

__global__ void probe_stmatrix(const std::uint32_t* fragments, const std::uint32_t* first,
                               std::uint32_t* out) {
  __shared__ __align__(16) std::uint32_t rows[kRows * 4];
  std::uint32_t fragment[4];
  for (int i = 0; i < 4; ++i) fragment[i] = fragments[4 * lane() + i];
  ptx::stmatrix_x4_trans(rows + 4 * first[lane()], fragment);
  __syncthreads();  // separates these stores from the loads below
  for (int i = 0; i < 4; ++i) out[4 * lane() + i] = rows[4 * lane() + i];
}

__global__ void probe_mma(FactorType type, const std::uint32_t* a, const std::uint32_t* b,
                          const float* d, float* out) {
  std::uint32_t mine_a[4], mine_b[2];
  float mine_d[4];
  for (int i = 0; i < 4; ++i) mine_a[i] = a[4 * lane() + i];
  for (int i = 0; i < 2; ++i) mine_b[i] = b[2 * lane() + i];
  for (int i = 0; i < 4; ++i) mine_d[i] = d[4 * lane() + i];
  if (type == FactorType::tf32) {
    ptx::mma_m16n8k8_tf32(mine_d, mine_a, mine_b);
  } else if (type == FactorType::f16) {
    ptx::mma_m16n8k16_f16(mine_d, mine_a, mine_b);
  } else {
    ptx::mma_m16n8k16_bf16(mine_d, mine_a, mine_b);
  }
  for (int i = 0; i < 4; ++i) out[4 * lane() + i] = mine_d[i];
}

__global__ void probe_cvt(const float* values, std::uint32_t* out) {
  out[lane()] = ptx::to_tf32(values[lane()]);
}

/// Dynamic shared memory from the next multiple of 1024 bytes on, where swizzles begin.
constexpr std::size_t kAlignment = 1024;
__device__ char* aligned_shared() {
  char* const begin = dynamic_shared<char>();
  return begin + (kAlignment - ptx::shared_address(begin) % kAlignment) % kAlignment;
}

struct Coordinates {
  int at[4];
  unsigned short offset[2];
};

/// kRank = 0: im2col mode.
template <int kRank>
__global__ void probe_tensor_load(const __grid_constant__ CUtensorMap map, Coordinates where,
                                  int bytes, int words, std::uint32_t* out) {
  __shared__ std::uint64_t barrier;
  auto* const box = reinterpret_cast<std::uint32_t*>(aligned_shared());
  for (int i = lane(); i < words; i += 32) box[i] = kUntouched;
  ptx::fence_proxy_async();
  __syncthreads();  // separates these stores from the load's
  if (lane() == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(&barrier, bytes);
    if constexpr (kRank == 0) {
      ptx::tma_load_im2col(box, &map, &barrier, where.at[0], where.at[1], where.at[2], where.at[3],
                           where.offset[0], where.offset[1]);
    } else {
      int at[kRank];
      for (int i = 0; i < kRank; ++i) at[i] = where.at[i];
      ptx::tma_load(box, &map, &barrier, at);
    }
  }
  __syncthreads();  // separates the barrier's initialization from the waits
  ptx::mbarrier_wait(&barrier, 0);
  for (int i = lane(); i < words; i += 32) out[i] = box[i];
}

/// Block 96: a warp that copies and leaves, and two that wait.
__global__ void probe_copies(const std::uint32_t* rows, std::uint32_t* out) {
  __shared__ std::uint64_t full, read;
  __shared__ __align__(16) std::uint32_t stage[64 * 4];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    ptx::mbarrier_init(&full, 33);
    ptx::mbarrier_init(&read, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialization from all use of the barriers
  if (thread >= 64) {
    const int i = thread - 64;
    ptx::cp_async<16>(stage + 4 * i, rows + 4 * i);
    ptx::cp_async_mbarrier_arrive_noinc(&full);
    if (i == 0) {
      ptx::mbarrier_arrive_expect_tx(&full, 32 * 16);
      ptx::cp_async_bulk(stage + 32 * 4, rows, 32 * 16, &full);
    }
    return;
  }
  ptx::mbarrier_wait(&full, 0);
  for (int i = thread; i < 64 * 4; i += 64) out[i] = stage[i];
  ptx::named_barrier_sync(1, 64);
  if (thread == 0) ptx::mbarrier_arrive(&read);
  ptx::mbarrier_wait(&read, 0);
}

constexpr int kClusterRow = 32, kClusterRounds = 3;

/// Clusters of `blocks`, with kClusterRow words of dynamic shared memory for each block, and room
/// for two barriers. In each round every block loads a row for all. Its last thread has left
/// before.
__global__ void probe_cluster(const __grid_constant__ CUtensorMap map, int blocks,
                              std::uint32_t* out) {
  auto* const stage = reinterpret_cast<std::uint32_t*>(aligned_shared());
  const unsigned rank = ptx::cluster_rank();
  const int thread = static_cast<int>(threadIdx.x), words = blocks * kClusterRow;
  auto* const full = reinterpret_cast<std::uint64_t*>(stage + words);  // behind the rows
  auto* const empty = full + 1;
  if (thread == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::mbarrier_init(empty, blocks);
    ptx::fence_mbarrier_init();
  }
  if (thread == 32) return;
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();  // separates the initialisation from all use of the barriers
  for (int round = 0; round < kClusterRounds; ++round) {
    const unsigned parity = static_cast<unsigned>(round) & 1;
    if (thread == 0) {
      ptx::mbarrier_wait(empty, parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(full, words * 4);
      const int row = static_cast<int>(blockIdx.x) * kClusterRounds + round;
      ptx::tma_load_multicast<2>(stage + rank * kClusterRow, &map, full, {0, row},
                                 (1u << blocks) - 1);
    }
    ptx::mbarrier_wait(full, parity);
    for (int i = thread; i < words; i += 32)
      out[(static_cast<int>(blockIdx.x) * kClusterRounds + round) * words + i] = stage[i];
    __syncwarp();  // separates the loads from the arrivals
    if (thread < blocks)
      ptx::mbarrier_arrive_relaxed(ptx::mapa(empty, static_cast<unsigned>(thread)));
  }
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();  // separates the others' last arrivals from the end of this block
}

/// Clusters of `blocks`, with a warp each: each thread sends four words of `in`,
/// [block][blocks][32], to each block of its cluster, which stores what has come, by ranks:
/// [block][blocks][32].
__global__ void probe_exchange(const float4* in, int blocks, float4* out) {
  auto* const parts = reinterpret_cast<float4*>(aligned_shared());
  auto* const came = reinterpret_cast<std::uint64_t*>(parts + blocks * 32);  // behind them
  const int thread = static_cast<int>(threadIdx.x), rank = static_cast<int>(ptx::cluster_rank());
  const int first = static_cast<int>(blockIdx.x) * blocks * 32;
  if (thread == 0) {
    ptx::mbarrier_init(came, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(came, blocks * 32 * 16);
  }
  __syncthreads();
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();  // separates the initialisation from all use of the barriers
  for (int to = 0; to < blocks; ++to) {
    const auto there = static_cast<unsigned>(to);
    ptx::st_async(ptx::mapa(parts + rank * 32 + thread, there), in[first + to * 32 + thread],
                  ptx::mapa(came, there));
  }
  ptx::mbarrier_wait(came, 0);
  for (int from = 0; from < blocks; ++from)
    out[first + from * 32 + thread] = parts[from * 32 + thread];
}

template <FactorType kType, int kN, bool kRowMajorB>
__global__ void probe_wgmma(const std::uint32_t* image, int words, WgmmaFactor a, WgmmaFactor b,
                            int steps, const float* d, float* out) {
  char* const shared = aligned_shared();
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < words; i += 128) {
    reinterpret_cast<std::uint32_t*>(shared)[i] = image[i];
  }
  ptx::fence_proxy_async();
  __syncthreads();  // separates these stores from wgmma's loads
  float sums[kN / 2];
  for (int i = 0; i < kN / 2; ++i) sums[i] = d[thread * (kN / 2) + i];
  const std::uint64_t a_at = ptx::wgmma_descriptor(shared + a.begin, a.group_bytes, a.row_bytes);
  const std::uint64_t b_at =
      kRowMajorB ? ptx::wgmma_row_major_descriptor(shared + b.begin, b.piece_bytes)
                 : ptx::wgmma_descriptor(shared + b.begin, b.group_bytes, b.row_bytes);
  ptx::wgmma_fence();
  for (int step = 0; step < steps; ++step) {
    const auto next = static_cast<std::uint64_t>(step * 32 / 16);  // 32 bytes, in units of 16 bytes
    const auto next_b = kRowMajorB ? static_cast<std::uint64_t>(step * 2048 / 16) : next;
    if constexpr (kType == FactorType::tf32) {
      ptx::wgmma_m64k8_tf32<kN>(sums, a_at + next, b_at + next_b, true);
    } else if constexpr (kType == FactorType::f16) {
      ptx::wgmma_m64k16_f16<kN, kRowMajorB>(sums, a_at + next, b_at + next_b, true);
    } else if constexpr (kType == FactorType::e4m3) {
      ptx::wgmma_m64k32_e4m3<kN>(sums, a_at + next, b_at + next, true);
    } else {
      ptx::wgmma_m64k16_bf16<kN, kRowMajorB>(sums, a_at + next, b_at + next_b, true);
    }
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  for (int i = 0; i < kN / 2; ++i) out[thread * (kN / 2) + i] = sums[i];
}

/// The same in TF32 with a in registers.
template <int kN>
__global__ void probe_wgmma_of_registers(const std::uint32_t* image, int words, WgmmaFactor a,
                                         WgmmaFactor b, int steps, const float* d, float* out) {
  char* const shared = aligned_shared();
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < words; i += 128) {
    reinterpret_cast<std::uint32_t*>(shared)[i] = image[i];
  }
  ptx::fence_proxy_async();
  __syncthreads();  // separates these stores from wgmma's loads
  float sums[kN / 2];
  for (int i = 0; i < kN / 2; ++i) sums[i] = d[thread * (kN / 2) + i];
  const std::uint64_t b_at = ptx::wgmma_descriptor(shared + b.begin, b.group_bytes, b.row_bytes);
  for (int step = 0; step < steps; ++step) {
    std::uint32_t fragment[4];
    for (int i = 0; i < 4; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
      const int at = a.begin + row / 8 * a.group_bytes + row % 8 * a.row_bytes +
                     (step * 8 + thread % 4 + i / 2 * 4) * 4;
      fragment[i] = *reinterpret_cast<const std::uint32_t*>(shared + at);
    }
    ptx::wgmma_fence();
    ptx::wgmma_m64k8_tf32<kN>(sums, fragment, b_at + static_cast<std::uint64_t>(step * 32 / 16),
                              true);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  }
  for (int i = 0; i < kN / 2; ++i) out[thread * (kN / 2) + i] = sums[i];
}

/// A function of the driver, found at run time.
template <class Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  if (found == nullptr) throw DeviceError(text("the driver has no ", name));
  return reinterpret_cast<Function*>(found);
}

CUtensorMap encoded(const TensorLoad& load, std::uint32_t* array) {
  std::vector<cuuint64_t> strides;
  cuuint64_t bytes = sizeof(std::uint32_t);
  for (const std::uint64_t size : load.dims) strides.push_back(bytes *= size);
  const auto type =
      load.round_to_tf32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const auto swizzle = load.swizzle == 0    ? CU_TENSOR_MAP_SWIZZLE_NONE
                       : load.swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                       : load.swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                            : CU_TENSOR_MAP_SWIZZLE_128B;
  const auto rank = static_cast<cuuint32_t>(load.dims.size());
  const std::vector<cuuint64_t> dims(load.dims.begin(), load.dims.end());
  CUtensorMap map{};
  const CUresult result =
      load.channels == 0
          ? driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled")(
                &map, type, rank, array, dims.data(), strides.data(), load.box.data(),
                load.steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
          : driver_function<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col")(
                &map, type, rank, array, dims.data(), strides.data(), load.lower.data(),
                load.upper.data(), load.channels, load.pixels, load.steps.data(),
                CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw DeviceError(text("no tensor map: error ", static_cast<int>(result)));
  }
  return map;
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

constexpr int kDeclaredWords = 40 * 1024 / 4;

__global__ void probe_shared_memory(int words, std::uint32_t* out) {
  __shared__ std::uint32_t declared[kDeclaredWords];
  std::uint32_t* const dynamic = dynamic_shared<std::uint32_t>();
  for (int i = lane(); i < kDeclaredWords + words; i += 32) {
    (i < kDeclaredWords ? declared[i] : dynamic[i - kDeclaredWords]) =
        static_cast<std::uint32_t>(i);
  }
  __syncthreads();  // all stores come before the first load: the two must not overlap
  for (int i = lane(); i < kDeclaredWords + words; i += 32) {
    out[i] = i < kDeclaredWords ? declared[i] : dynamic[i - kDeclaredWords];
  }
}

}  // namespace

Registers through_shared_memory(LaunchedBy how, std::size_t bytes) {
  const int words = static_cast<int>(bytes / 4);
  const DeviceArray<std::uint32_t> out(kDeclaredWords + words);
  const LaunchConfig config{.grid = 1, .block = 32, .shared_bytes = bytes};
  switch (how) {
    case LaunchedBy::launch: launch(probe_shared_memory, config, words, out.data()); break;
    case LaunchedBy::launch_early:
      launch_early(probe_shared_memory, config, words, out.data());
      break;
    case LaunchedBy::launch_cooperatively:
      launch_cooperatively(probe_shared_memory, config, words, out.data());
      break;
  }
  return registers_of(out, static_cast<std::size_t>(kDeclaredWords + words));
}

bool has_tensor_cores() { return compute_capability() >= 80; }

Registers load_matrices(const Registers& rows, const Registers& first, int matrices,
                        bool transposed) {
  const auto on_device = uploaded<std::uint32_t>(rows), lanes = uploaded<std::uint32_t>(first);
  const DeviceArray<std::uint32_t> out(32 * matrices);
  launch(probe_ldmatrix, {1, 32}, on_device.data(), lanes.data(), matrices, transposed, out.data());
  return registers_of(out, 32 * static_cast<std::size_t>(matrices));
}

Registers store_matrices(const Registers& fragments, const Registers& first) {
  const auto on_device = uploaded<std::uint32_t>(fragments), lanes = uploaded<std::uint32_t>(first);
  const DeviceArray<std::uint32_t> out(128);
  launch(probe_stmatrix, {1, 32}, on_device.data(), lanes.data(), out.data());
  return registers_of(out, 128);
}

Registers multiply(FactorType type, const Registers& a, const Registers& b, const Registers& d) {
  const auto on_device_a = uploaded<std::uint32_t>(a), on_device_b = uploaded<std::uint32_t>(b);
  const auto on_device_d = uploaded<float>(d);
  const DeviceArray<float> out(128);
  launch(probe_mma, {1, 32}, type, on_device_a.data(), on_device_b.data(), on_device_d.data(),
         out.data());
  return registers_of(out, 128);
}

Registers round_to_tf32(const Registers& values) {
  const auto on_device = uploaded<float>(values);
  const DeviceArray<std::uint32_t> out(32);
  launch(probe_cvt, {1, 32}, on_device.data(), out.data());
  return registers_of(out, 32);
}

bool has_wgmma() { return compute_capability() == 90; }

Registers load_box(const TensorLoad& load, const Registers& array) {
  const auto on_device = uploaded<std::uint32_t>(array);
  const CUtensorMap map = encoded(load, on_device.data());
  Coordinates where{};
  std::copy(load.at.begin(), load.at.end(), where.at);
  std::copy(load.offset.begin(), load.offset.end(), where.offset);
  const auto words = static_cast<int>(load.words);
  const DeviceArray<std::uint32_t> out(words);
  const LaunchConfig config{.grid = 1, .block = 32, .shared_bytes = kAlignment + 4 * load.words};
  const auto go = [&](auto kernel) {
    launch(kernel, config, map, where, load.bytes, words, out.data());
  };
  if (load.channels != 0) {
    go(probe_tensor_load<0>);
  } else if (load.dims.size() == 2) {
    go(probe_tensor_load<2>);
  } else if (load.dims.size() == 3) {
    go(probe_tensor_load<3>);
  } else {
    go(probe_tensor_load<4>);
  }
  return registers_of(out, load.words);
}

Registers copy_to_barrier(const Registers& rows) {
  const auto on_device = uploaded<std::uint32_t>(rows);
  const DeviceArray<std::uint32_t> out(64 * 4);
  launch(probe_copies, {1, 96}, on_device.data(), out.data());
  return registers_of(out, 64 * 4);
}

Registers share_in_clusters(const Registers& rows, int blocks) {
  const auto on_device = uploaded<std::uint32_t>(rows);
  const auto count = rows.size() / kClusterRow;
  const CUtensorMap map = encoded(
      {.dims = {kClusterRow, count}, .box = {kClusterRow, 1}, .steps = {1, 1}}, on_device.data());
  const std::size_t words = rows.size() * static_cast<std::size_t>(blocks);
  const DeviceArray<std::uint32_t> out(static_cast<std::int64_t>(words));
  launch_in_clusters(
      static_cast<unsigned>(blocks), probe_cluster,
      {.grid = static_cast<unsigned>(count / kClusterRounds),
       .block = 33,
       .shared_bytes = kAlignment + 4 * static_cast<std::size_t>(blocks * kClusterRow) + 16},
      map, blocks, out.data());
  return registers_of(out, words);
}

Registers exchange_in_clusters(const Registers& words, int blocks) {
  const auto on_device = uploaded<std::uint32_t>(words);
  const DeviceArray<std::uint32_t> out(static_cast<std::int64_t>(words.size()));
  const auto row = static_cast<std::size_t>(blocks) * 32 * 16;
  launch_in_clusters(static_cast<unsigned>(blocks), probe_exchange,
                     {.grid = static_cast<unsigned>(words.size() * 4 / row),
                      .block = 32,
                      .shared_bytes = kAlignment + row + 8},
                     reinterpret_cast<const float4*>(on_device.data()), blocks,
                     reinterpret_cast<float4*>(out.data()));
  return registers_of(out, words.size());
}

namespace {

template <FactorType kType>
Registers multiply_in_warpgroup_as(const Registers& image, const WgmmaFactor& a,
                                   const WgmmaFactor& b, int n, int steps, const Registers& d) {
  const auto on_device = uploaded<std::uint32_t>(image);
  const auto sums = uploaded<float>(d);
  const DeviceArray<float> out(static_cast<std::int64_t>(d.size()));
  const LaunchConfig config{.grid = 1, .block = 128, .shared_bytes = kAlignment + 4 * image.size()};
  const auto go = [&](auto kernel) {
    launch(kernel, config, on_device.data(), static_cast<int>(image.size()), a, b, steps,
           sums.data(), out.data());
  };
  // Where b may be row-major.
  constexpr bool kRowMajor = kType == FactorType::f16 || kType == FactorType::bf16;
  if (a.in_registers) {
    n == 64    ? go(probe_wgmma_of_registers<64>)
    : n == 128 ? go(probe_wgmma_of_registers<128>)
               : go(probe_wgmma_of_registers<256>);
  } else if (kRowMajor && b.piece_bytes != 0) {
    n == 64 ? go(probe_wgmma<kType, 64, kRowMajor>) : go(probe_wgmma<kType, 256, kRowMajor>);
  } else if (n == 16) {
    go(probe_wgmma<kType, 16, false>);
  } else if (n == 32) {
    go(probe_wgmma<kType, 32, false>);
  } else if (n == 64) {
    go(probe_wgmma<kType, 64, false>);
  } else if (n == 128) {
    go(probe_wgmma<kType, 128, false>);
  } else {
    go(probe_wgmma<kType, 256, false>);
  }
  return registers_of(out, d.size());
}

}  // namespace

Registers multiply_in_warpgroup(FactorType type, const Registers& image, const WgmmaFactor& a,
                                const WgmmaFactor& b, int n, int steps, const Registers& d) {
  const auto multiplied = type == FactorType::tf32   ? multiply_in_warpgroup_as<FactorType::tf32>
                          : type == FactorType::f16  ? multiply_in_warpgroup_as<FactorType::f16>
                          : type == FactorType::bf16 ? multiply_in_warpgroup_as<FactorType::bf16>
                                                     : multiply_in_warpgroup_as<FactorType::e4m3>;
  return multiplied(image, a, b, n, steps, d);
}

}  // namespace convladder::BACKEND::ptx_probe
