/// @file gauss_product.cuh
/// @brief Complex GEMMs on tensor cores by three real ones (Gauss): the stages of
/// gemm/wgmma_3xtf32.cu, with sums and differences computed in registers.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "cuda_optimized/conv2d/shared/fft/spectra_plan.cuh"
#include "cuda_optimized/gemm/shared/tf32_swap_ab.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Of the operands of a GEMM, in a stage: three matrices of U, two of V, and the small parts of
/// U's, which splitters write.
struct GaussStage {
  using Shape = gemm::SwappedShape<64, 2>;             ///< Of each matrix.
  static constexpr int kU = 3,                         ///< Matrices of U.
      kV = 2;                                          ///< Matrices of V.
  static constexpr int kBytesU = kU * Shape::kBytesA,  ///< Of U.
      kLoadedBytes = kBytesU + kV * Shape::kBytesB,    ///< What TMA loads.
      kBytes = kLoadedBytes + kBytesU;                 ///< With U's small parts.
  /// Dynamic shared memory of a block, as of any SwappedShape.
  static constexpr std::size_t kSharedBytes =
      Shape::kStages * kBytes + gemm::kDraftBytes + gemm::kAtom;
};

/// Threads of a block: the consumers, and a warpgroup of which one warp loads and two split.
inline constexpr int kGaussThreads = gemm::kConsumerThreads + 128;
inline constexpr int kFirstSplitter = gemm::kConsumerThreads + 32,  ///< The first that splits.
    kSplitters = 64;                                                ///< Threads that split.
/// Registers a thread: what all begin with, 65536 / kGaussThreads in eights, and what they change
/// to.
inline constexpr int kRegisters = 168,  ///< At the beginning.
    kRegistersToLoad = 40,              ///< Of the loading warpgroup.
    kRegistersToMultiply = 232;         ///< Of the consumers.
static_assert(kRegistersToLoad + gemm::kConsumers * kRegistersToMultiply <=
              (1 + gemm::kConsumers) * kRegisters);

/// Writes the small parts of a stage's U: floats minus their leading 11 bits, rounded to TF32. All
/// splitters call it. @param thread of them
template <class Stage>
__device__ void split_gauss_stage(char* stage, int thread) {
  const auto small_part = [](float value) {
    const float big = __uint_as_float(__float_as_uint(value) & 0xffffe000u);
    return __uint_as_float(ptx::to_tf32(value - big));
  };
  const float4* const u = reinterpret_cast<const float4*>(stage) + thread;
  float4* const small = reinterpret_cast<float4*>(stage + Stage::kLoadedBytes) + thread;
#pragma unroll 4
  for (int i = 0; i < Stage::kBytesU / 16; i += kSplitters) {
    const float4 x = u[i];
    small[i] = {small_part(x.x), small_part(x.y), small_part(x.z), small_part(x.w)};
  }
}

/// u [product][3][m][k] and v [product][2][k][n] by TMA, m in [product][2][m][n]: re
/// and im of each sum. Gauss's three, with U1 = re, U2 = im - re and U3 = re + im of a factor,
///
///     k1 = U1 (re + im)    k2 = U2 re    k3 = U3 im        re = k1 - k3    im = k1 + k2
///
/// and for frequencies of two real numbers re = U1 re and im = U3 im, with U2 = 0.
/// Grid <= places.count, block kGaussThreads. @tparam Stage GaussStage
template <class Stage>
__global__ void __launch_bounds__(kGaussThreads, 1)
    conv2d_gauss_product(const __grid_constant__ CUtensorMap u_map,
                         const __grid_constant__ CUtensorMap v_map, SpectraPlan plan,
                         gemm::WgmmaWork work, gemm::WgmmaPlaces places,
                         const __grid_constant__ gemm::BoxedRows<GaussStage::Shape> result) {
  using Shape = typename Stage::Shape;
  constexpr int kStep = gemm::kWgmmaStep;
  // full: the stage has arrived; ready: so have U's small parts; empty: all consumers have read it.
  __shared__ std::uint64_t full[Shape::kStages], ready[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (gemm::kAtom - ptx::shared_address(stages) % gemm::kAtom) % gemm::kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&ready[i], kSplitters / 32);
      ptx::mbarrier_init(&empty[i], gemm::kConsumerThreads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  const int tiles_m = static_cast<int>(plan.m / Shape::M);  // of a matrix
  int stage = 0;
  unsigned round = 0;  // phase of the stages, modulo 2: the parity that mbarrier_wait() takes
  if (thread >= gemm::kConsumerThreads) {
    ptx::setmaxnreg_dec<kRegistersToLoad>();
    const bool splits = thread >= kFirstSplitter;
    if (thread >= kFirstSplitter + kSplitters || (!splits && lane > 0)) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      gemm::WgmmaItem item;
      if (!gemm::item_at(work, places, index, &item)) continue;
      const int product = static_cast<int>(item.m) / tiles_m;
      const int m = static_cast<int>(item.m) % tiles_m * Shape::M;
      for (int step = item.first; step < item.last; ++step) {
        char* const to = stages + stage * Stage::kBytes;
        if (splits) {
          ptx::mbarrier_wait(&full[stage], round);
          split_gauss_stage<Stage>(to, thread - kFirstSplitter);
          ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
          __syncwarp();              // separates all lanes' stores from the arrival
          if (lane == 0) ptx::mbarrier_arrive(&ready[stage]);
        } else {
          // Waits until the consumers have read the stage's previous phase; in phase 0, at once.
          ptx::mbarrier_wait(&empty[stage], round ^ 1);
          ptx::mbarrier_arrive_expect_tx(&full[stage], Stage::kLoadedBytes);
          const int rows_u = product * Stage::kU * static_cast<int>(plan.m) + m;
          const int rows_v = product * Stage::kV * static_cast<int>(plan.k) + step * kStep;
#pragma unroll 1
          for (int i = 0; i < Stage::kU; ++i)
            ptx::tma_load<2>(to + i * Shape::kBytesA, &u_map, &full[stage],
                             {step * kStep, rows_u + i * static_cast<int>(plan.m)});
#pragma unroll 1
          for (int i = 0; i < Stage::kV * (Shape::N / gemm::kPanel); ++i) {
            const int part = i / (Shape::N / gemm::kPanel), panel = i % (Shape::N / gemm::kPanel);
            ptx::tma_load<2>(to + Stage::kBytesU + i * gemm::kPanelBytes, &v_map, &full[stage],
                             {item.n * Shape::N + panel * gemm::kPanel,
                              rows_v + part * static_cast<int>(plan.k)});
          }
        }
        if (++stage == Shape::kStages) stage = 0, round ^= 1;
      }
    }
    return;
  }

  ptx::setmaxnreg_inc<kRegistersToMultiply>();  // waits until the producers have released theirs
  float* const drafts = reinterpret_cast<float*>(stages + Shape::kStages * Stage::kBytes);
  int box = 0;
  const gemm::FragmentPlace fragment_place(thread);
  const std::uint64_t u_at = ptx::wgmma_descriptor(stages);
  const bool all_four = plan.k <= kStep;  // the rounding of few products counts
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    gemm::WgmmaItem item;
    if (!gemm::item_at(work, places, index, &item)) continue;
    const int product = static_cast<int>(item.m) / tiles_m;
    const bool two_reals = RealTile::is_pair(product / plan.groups());
    float re[Shape::M / 2], im[Shape::M / 2];  // of 64 columns, each with all rows of the tile
#pragma unroll
    for (int i = 0; i < Shape::M / 2; ++i) re[i] = im[i] = 0.0f;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const int begin = stage * Stage::kBytes;
      const float* const numbers = reinterpret_cast<const float*>(stages + begin + Stage::kBytesU);
      std::uint32_t v[Stage::kV][kStep / 8][4];  // the thread's part of V: re, im
#pragma unroll
      for (int k = 0; k < kStep / 8; ++k) {
#pragma unroll
        for (int part = 0; part < Stage::kV; ++part)
          fragment_place.load(numbers + part * (Shape::kBytesB / 4), k * 8, v[part][k]);
      }
      ptx::mbarrier_wait(&ready[stage], round);
#pragma unroll
      for (int i = 0; i < Stage::kU; ++i) {
        std::uint32_t big[kStep / 8][4], small[kStep / 8][4];
#pragma unroll
        for (int k = 0; k < kStep / 8; ++k) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            float value = __uint_as_float(v[i / 2][k][j]);
            if (i == 0 && !two_reals) value += __uint_as_float(v[1][k][j]);
            big[k][j] = ptx::to_tf32(value);
            small[k][j] = ptx::to_tf32(value - __uint_as_float(big[k][j]));
          }
        }
        const auto big_u = [&](int k) {
          return gemm::further(u_at, begin + i * Shape::kBytesA + k * 32);
        };
        const auto small_u = [&](int k) {
          return gemm::further(u_at, begin + Stage::kLoadedBytes + i * Shape::kBytesA + k * 32);
        };
        float sums[Shape::M / 2];  // of this step, the smallest first
        if (all_four) {
          ptx::wgmma_fence();
#pragma unroll
          for (int k = 0; k < kStep / 8; ++k)
            ptx::wgmma_m64k8_tf32<Shape::M>(sums, small[k], small_u(k), k > 0);
          ptx::wgmma_commit_group();
          ptx::wgmma_wait_group<0>();  // sums come from either way, so they must be there
        }
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < kStep / 8; ++k) {
          ptx::wgmma_m64k8_tf32<Shape::M>(sums, small[k], big_u(k), all_four || k > 0);
          ptx::wgmma_m64k8_tf32<Shape::M>(sums, big[k], small_u(k), true);
        }
#pragma unroll
        for (int k = 0; k < kStep / 8; ++k)
          ptx::wgmma_m64k8_tf32<Shape::M>(sums, big[k], big_u(k), true);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<0>();
        if (i == Stage::kU - 1 && lane == 0) ptx::mbarrier_arrive(&empty[stage]);
          // k1 has a part in both, k2 in im and k3 in re; of two real numbers, each in its own.
#pragma unroll
        for (int j = 0; j < Shape::M / 2; ++j) {
          if (i == 0 || (i == 2 && !two_reals)) re[j] += i == 0 ? sums[j] : -sums[j];
          if ((i == 0 && !two_reals) || i == 1 || (i == 2 && two_reals)) im[j] += sums[j];
        }
      }
      if (++stage == Shape::kStages) stage = 0, round ^= 1;
    }
    item.m = std::int64_t{product} * 2 * tiles_m + item.m % tiles_m;
    result.store(item, re, drafts, box);
    item.m += tiles_m;
    result.store(item, im, drafts, box);
  }
  result.finish();
}

/// Computes m from u and v, of a plan for tensor cores.
inline void launch_gauss_product(const SpectraPlan& plan, const float* u, const float* v,
                                 float* m) {
  using Shape = GaussStage::Shape;
  const auto map = [&](int parts, std::int64_t rows, std::int64_t columns, int box_rows,
                       const float* data) {
    const std::int64_t all = plan.products * parts * rows;
    return tensor_map(TiledMap{2, {columns, all}, {1, columns}, {gemm::kPanel, box_rows}, true},
                      data);
  };
  const gemm::WgmmaWork work = {
      .tiles_m = plan.products * (plan.m / Shape::M),
      .tiles_n = static_cast<int>(ceil_div<std::int64_t>(plan.n, Shape::N)),
      .splits = 1,
      .steps = static_cast<int>(plan.k / gemm::kWgmmaStep),
      .group = 2048 / Shape::N};
  const gemm::WgmmaPlaces places(work);
  launch(conv2d_gauss_product<GaussStage>,
         {dim3(blocks_for(places.count, 1, multiprocessors())), dim3(kGaussThreads),
          GaussStage::kSharedBytes},
         map(GaussStage::kU, plan.m, plan.k, Shape::M, u),
         map(GaussStage::kV, plan.k, plan.n, gemm::kWgmmaStep, v), plan, work, places,
         gemm::BoxedRows<Shape>{map(2, plan.m, plan.n, gemm::kDraftRows, m)});
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
