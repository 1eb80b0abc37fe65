/// @file split_k_mma.cu
/// @brief sparse_wgrad: tensor cores; mma.sync, with both operands transposed as they are loaded.
///
/// - Before: split_k.cu
/// - After: split_k_wgmma.cu
/// - How pairs are cut and gathered: shared/pair_parts.cuh; the second launch:
///   shared/sum_parts.cuh
/// - The same maths: cpu_reference/sparse_wgrad/gather_gemm_scatter.cpp
///
/// **The idea.** mma.sync reads both operands with k contiguous. Here k counts pairs, and a
/// gathered row has its channels contiguous, so both operands must be transposed. ldmatrix with
/// `.trans` does that for 16-bit elements while it loads them from shared memory:
///
///     shared memory               8 x 8 elements           fragment of a = features^T
///       pair 0  [ci . . . . .]    pair 0  o + x ...        lane (ci, pairs 0 and 1)  o
///       pair 1  [ci . . . . .]    pair 1  o + x ...                                  o
///        ...                      ldmatrix.trans    - ->   lane (ci + 1, ...)        + ...
///
/// ldmatrix transposes units of 2 bytes, so TF32 fragments are loaded by element.
///
/// **Expect.** For sweep-64-subm3 the two rows of each pair are read once from the L2 cache, 223 MB
/// in fp16 and 446 MB in TF32, which takes longer than the MMAs. Predicted on an H200: 55 us in
/// fp16 and 100 us in TF32.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype tf32
/// @expect loads_per_output.features 3838 * 8 / 27648 = 1.1105, a load for each pair, in vectors
/// @expect loads_per_output.workspace 72 / 27 = 2.667, 72 parts, each once
/// @expect launches 2
/// **Costs.** Workspace as split_k. Not supported: before sm_80, float32 with precision fp32.
/// **Try.** Let one block compute two mirrored taps (under `subm`). Which rows do they share?
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"
#include "cuda_optimized/sparse_wgrad/shared/sum_parts.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {
namespace {

/// A tile of channels x channels, and its warps. A step has the same number of bytes for all types.
template <class T, int kTileChannels>
struct Shape {
  static constexpr int kTile = kTileChannels;                              ///< of Cin, and of Cout
  static constexpr int kWarpM = kTile < 128 ? 32 : 64, kWarpN = 32;        ///< of a warp
  static constexpr int kWarpsN = kTile / kWarpN;                           ///< warps along Cout
  static constexpr int kThreads = kTile / kWarpM * kWarpsN * 32;           ///< of a block
  static constexpr int kStepPairs = 64 / static_cast<int>(sizeof(T));      ///< in a stage
  static constexpr int kStages = 4;                                        ///< of cp.async
  static constexpr int kBlocks = kTile == 128 ? 2 : kTile == 64 ? 4 : 16;  ///< on an SM
};

/// A tile [pair][channel] of floats, rows padded by 8 floats against bank conflicts.
template <class S>
struct PaddedRows {
  using Number = float;
  static constexpr int kPairs = S::kStepPairs, kChannels = S::kTile;
  static constexpr int kPitch = kChannels + 8;
  static constexpr int kCount = kPairs * kPitch;  ///< of a tile
  HOST_DEVICE static int at(int i, int c) { return i * kPitch + c; }
};

/// A tile [pair][channel] of 16-bit elements in pieces of 8, swizzled: the pieces at the same
/// position of eight pairs, which ldmatrix reads together, are in different banks.
template <class T, class S>
struct PermutedRows {
  using Number = T;
  static constexpr int kPairs = S::kStepPairs, kChannels = S::kTile;
  static constexpr int kCount = kPairs * kChannels;
  HOST_DEVICE static int at(int i, int c) {
    const int turn = kChannels >= 64 ? i % 8 : i / 2 % 4;  // rows of 64 bytes: two rows span all
                                                           // banks
    return i * kChannels + ((c / 8 ^ turn) * 8 | c % 8);
  }
};

/// The layout of a type's tiles.
template <class T, class S>
using LayoutOf = std::conditional_t<sizeof(T) == 4, PaddedRows<S>, PermutedRows<T, S>>;

/// Loads kCount fragments of 8 channels each, from channel c0 on, of the instruction's steps from
/// pair i0 on. fragment[f][e]: 4 bytes along the pairs, the e-th half of the steps.
template <class T, class Layout, int kCount>
__device__ void load_fragments(const T* tile, int i0, int c0,
                               std::uint32_t (&fragments)[kCount][2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int f = 0; f < kCount; ++f) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        fragments[f][e] =
            __float_as_uint(tile[Layout::at(i0 + 4 * e + lane % 4, c0 + 8 * f + lane / 4)]);
      }
      MmaNumber<T>::round(fragments[f]);
    }
  } else {
#pragma unroll
    for (int f = 0; f < kCount; f += 2) {
      std::uint32_t
          four[4];  // (pairs 0 to 7, 8 channels), (8 to 15, the same), the next 8 channels
      ptx::ldmatrix_x4_trans(four, tile + Layout::at(i0 + lane % 16, c0 + 8 * f + lane / 16 * 8));
#pragma unroll
      for (int e = 0; e < 4; ++e) fragments[f + e / 2][e % 2] = four[e];
    }
  }
}

/// The parameters of the kernel.
template <class T>
struct Product {
  int Cin, Cout, tiles_out;
  PairParts parts;
  const T *features, *dy;
  const std::int32_t *pairs, *offsets;
};

/// Grid (parts of a slab, tiles of channels, slabs), block (S::kThreads).
/// @param parts [slabs][most_parts][Cin][Cout]
/// @tparam kAligned rows of features and dy are aligned to 16 bytes, and Cout is even
template <class T, class S, bool kAligned>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    sparse_wgrad_split_k_mma(Product<T> product, float* parts) {
  BlockWork work;
  if (!work_of_block<S::kTile, S::kTile>(product.parts, product.offsets, product.tiles_out,
                                         &work)) {
    return;  // uniform for the block
  }
  using Layout = LayoutOf<T, S>;
  RowGather<Layout, S::kThreads, kAligned> inputs(
      product.features, product.Cin, work.ci0, product.pairs, 1, work.part.first, work.part.count);
  RowGather<Layout, S::kThreads, kAligned> gradients(
      product.dy, product.Cout, work.co0, product.pairs, 2, work.part.first, work.part.count);
  const auto stage_of = [](int step) {
    return dynamic_shared<T>() + step % S::kStages * 2 * Layout::kCount;
  };
  const int steps = ceil_div(work.part.count, S::kStepPairs);
  const auto ask_for = [&](int step) {
    if (step < steps) {
      inputs.copy_rows(stage_of(step));
      gradients.copy_rows(stage_of(step) + Layout::kCount);
      inputs.load_rows();
      gradients.load_rows();
    }
    ptx::cp_async_commit_group();  // committed even without copies, since the waits count groups
  };

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int m0 = warp / S::kWarpsN * S::kWarpM, n0 = warp % S::kWarpsN * S::kWarpN;
  constexpr int kRowsA = S::kWarpM / 8, kColumnsB = S::kWarpN / 8;  // fragments of 8 channels
  float sums[kRowsA / 2][kColumnsB][4] = {};
  inputs.load_rows();
  gradients.load_rows();
  for (int step = 0; step < S::kStages - 1; ++step) ask_for(step);
  // Without the pipeline the loop would be
  //
  //     for 64 bytes of pairs:  tile[p] = features[in of pair p][ci0 ...], then dy[out][co0
  //     ...]
  //       __syncthreads();  a, b = fragments, transposed;  mma.sync: accumulators += a * b
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait_group<S::kStages - 2>();
    // This thread's copies of the step have landed. The barrier makes those of all threads visible,
    // and separates the loads of the previous step from the copies into its stage.
    __syncthreads();
    ask_for(step + S::kStages - 1);
    const T* const tile = stage_of(step);
#pragma unroll
    for (int i = 0; i < S::kStepPairs; i += MmaNumber<T>::kSteps) {
      std::uint32_t a[kRowsA][2], b[kColumnsB][2];
      load_fragments<T, Layout>(tile, i, m0, a);
      load_fragments<T, Layout>(tile + Layout::kCount, i, n0, b);
#pragma unroll
      for (int m = 0; m < kRowsA / 2; ++m) {
        const std::uint32_t both[4] = {a[2 * m][0], a[2 * m + 1][0], a[2 * m][1], a[2 * m + 1][1]};
#pragma unroll
        for (int n = 0; n < kColumnsB; ++n) MmaNumber<T>::multiply(sums[m][n], both, b[n]);
      }
    }
  }

  float* const to = parts + std::int64_t{work.slot} * product.Cin * product.Cout;
#pragma unroll
  for (int m = 0; m < kRowsA; ++m) {
    const int ci = work.ci0 + m0 + 8 * m + lane / 4;
    if (ci >= product.Cin) break;
#pragma unroll
    for (int n = 0; n < kColumnsB; ++n) {
      const int co = work.co0 + n0 + 8 * n + lane % 4 * 2;
      float* const at = to + std::int64_t{ci} * product.Cout + co;
      const float first = sums[m / 2][n][m % 2 * 2], second = sums[m / 2][n][m % 2 * 2 + 1];
      if constexpr (kAligned) {
        if (co < product.Cout) *reinterpret_cast<float2*>(at) = float2{first, second};
      } else {
        if (co < product.Cout) at[0] = first;
        if (co + 1 < product.Cout) at[1] = second;
      }
    }
  }
}

constexpr int kShortestPart = 64, kLongestPart = 2048;  ///< Pairs.

/// The parts of a problem: long ones, so that there are few partial results to add, in slabs that
/// fit in the L2 cache: about as many as run at once on an H200.
PairParts pair_parts_of(const SparseConvProblem& conv) {
  const int channels = tile_channels(conv);
  const std::int64_t tiles =
      std::int64_t{ceil_div(conv.Cin, channels)} * ceil_div(conv.Cout, channels);
  const std::int64_t blocks = 132 * (channels == 128 ? 2 : channels == 64 ? 4 : 8);
  return cut_pairs(conv, std::max<std::int64_t>(blocks / tiles, 1), kShortestPart, kLongestPart);
}

template <class T, int kTile, bool kAligned>
void launch_with(Product<T> product, float* parts) {
  using S = Shape<T, kTile>;
  product.tiles_out = ceil_div(product.Cout, kTile);
  const dim3 grid(static_cast<unsigned>(product.parts.most_parts),
                  static_cast<unsigned>(ceil_div(product.Cin, kTile) * product.tiles_out),
                  static_cast<unsigned>(product.parts.slabs()));
  launch(sparse_wgrad_split_k_mma<T, S, kAligned>,
         {grid, dim3(S::kThreads), S::kStages * 2 * LayoutOf<T, S>::kCount * sizeof(T)}, product,
         parts);
}

template <class T>
bool rows_are_aligned(const Product<T>& product) {
  const auto address = reinterpret_cast<std::uintptr_t>(product.features) |
                       reinterpret_cast<std::uintptr_t>(product.dy);
  return (product.Cin | product.Cout) * sizeof(T) % 16 == 0 && address % 16 == 0;
}

/// Channels of the tile, 0 where rows are not aligned.
template <class T>
int aligned_tile(const Product<T>& product, const SparseConvProblem& conv) {
  return rows_are_aligned(product) ? tile_channels(conv) : 0;
}

/// features [N][Cin], dy [M][Cout], pairs [P][3], offsets [KV + 1], dw [KV][Cin][Cout].
template <class T>
void run_in(const SparseConvProblem& conv, const SparseWgradArrays& arrays,
            const Context& context) {
  const Product<T> product = {.Cin = conv.Cin,
                              .Cout = conv.Cout,
                              .tiles_out = 0,
                              .parts = pair_parts_of(conv),
                              .features = arrays.features,
                              .dy = arrays.dy,
                              .pairs = arrays.pairs,
                              .offsets = arrays.offsets};
  auto* const parts = context.workspace_as<float>();
  switch (aligned_tile(product, conv)) {
    case 128: launch_with<T, 128, true>(product, parts); break;
    case 64: launch_with<T, 64, true>(product, parts); break;
    case 32: launch_with<T, 32, true>(product, parts); break;
    default: launch_with<T, 32, false>(product, parts); break;
  }
  launch_sum_pair_parts(product.parts, product.offsets, parts, std::int64_t{conv.Cin} * conv.Cout,
                        arrays.dw);
}

Declined supports(const SparseConvProblem& conv) {
  if (const Declined why = why_not("sm_80")) return why;
  if (conv.dtype == DType::f32 && conv.precision == Precision::fp32) {
    return "float32 with precision fp32: tensor cores round to TF32";
  }
  if (std::int64_t{ceil_div(conv.Cin, 32)} * ceil_div(conv.Cout, 32) > kMaxGridYZ) {
    return "more than 65535 tiles of 32 x 32 channels";
  }
  return {};
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  const PairParts parts = pair_parts_of(conv);
  return sizeof(float) * static_cast<std::size_t>(std::int64_t{parts.most_parts} * parts.slabs() *
                                                  conv.Cin * conv.Cout);
}

void run(const SparseConvProblem& conv, const SparseWgradArrays& arrays, const Context& context) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_in<T>(conv, arrays, context); });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  const int channels = with_float_type(conv.dtype, [&]<class T>(T) {
    Product<T> product{};  // null arrays count as aligned
    product.Cin = conv.Cin;
    product.Cout = conv.Cout;
    return aligned_tile(product, conv);
  });
  const PairParts parts = pair_parts_of(conv);
  return text(dtype_name(conv), ", ",
              channels == 0 ? "rows of any length" : text(channels, " x ", channels), ", ",
              in_words(parts, kShortestPart, kLongestPart), ", ", groups_in_words(parts));
}

}  // namespace

extern const Implementation<SparseWgradArrays> split_k_mma = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
