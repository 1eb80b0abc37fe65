/// @file implicit_gemm_mma_tf32.cu
/// @brief conv2d_wgrad in NHWC on the tensor cores: implicit GEMM whose sums are split over blocks.
///
/// - Before: implicit_gemm_cp_async.cu (float arithmetic, NCHW)
/// - Made of: cuda_optimized/gemm/mma_tile.cuh
/// - The same maths: cpu_reference/conv2d_wgrad/im2col_gemm.cpp
///
/// **The idea.** dw = dy^T * windows, summed over all pixels of all images: few results, long sums.
/// In NHWC both factors lie across the sum: a pixel's output channels side by side in dy, its
/// input's channels in x. So both tiles are staged as they are, a row for each pixel, and fragments
/// are loaded a float at a time (gemm/mma_tile.cuh, across_k):
///
///                 K/G                          R*S*C/G
///     pixel [ dy[pixel][k] ]^T   x   pixel [ x[p + r][q + s][c] ]   =   dw [K/G][R*S*C/G]
///
/// A thread copies the same tap and channels in all stages, for other pixels: it finds r, s and c
/// once, and one warp finds the 32 pixels of a stage, two stages ahead, for all.
///
/// B4 has 64 x 576 results, five tiles for 132 SMs: so the pixels are split among blocks, and each
/// split writes its own dw. A second kernel adds them up in order: no atomics, the same bits in
/// every run. How many splits: those that waste the least of the last wave of blocks, counting what
/// the additions cost (plan_of()).
///
/// **Expect.** Loads from shared memory, 64 bytes a lane for 32 products, in 32 instructions
/// instead of 12: 130 to 150 TFLOP/s before the additions. B10 predicted 1700 us, B4 110 us.
/// **Costs.** 105 KB of shared memory a block; splits * |dw| floats of workspace. db reads dy once
/// more. C/G and K/G that are no multiples of 4 are copied 4 bytes at a time. Declined: fp32
/// problems, NCHW, GPUs before compute capability 8.0, 2^31 pixels.
/// **Try.** Add the splits' results by atomicAdd instead: what is gained, and what does the suite
/// say to `deterministic`?
#include "core/cuda/compute_capability.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/gathered_gemm_mma.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

using conv2d::device_attribute;
using gemm::kMmaStep;
using gemm::TileOrder;

constexpr int kTables = 4;  ///< Stages whose pixels are known: three in use, one being found.

/// Where a pixel's window begins.
struct alignas(16) Window {
  std::int64_t source;  ///< Offset of its first pixel, which may lie in the padding.
  int h, w;             ///< The same as coordinates.
};

/// The sizes of a kernel: a block's tile of dw and a warp's, filters x taps and channels.
template <int kM, int kN, int kWarpM, int kWarpN, int kBlocksPerSm>
struct Shape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  static constexpr int kBlocks = kBlocksPerSm;
  using Stages = gemm::MmaStages<TileOrder::across_k, kM, TileOrder::across_k, kN, 3>;
  static constexpr std::size_t kSharedBytes =
      Stages::kStages * Stages::kFloats * sizeof(float) + kTables * kMmaStep * sizeof(Window);
};
using Large = Shape<128, 128, 64, 64, 2>;
using Narrow = Shape<64, 128, 32, 64, 2>;  ///< For at most 64 filters.
using Small = Shape<64, 64, 32, 32, 3>;    ///< For few taps and channels.
using Thin = Shape<16, 128, 16, 32, 3>;    ///< For at most 16 filters.

/// What a kernel needs to know.
struct Product {
  Conv2dProblem conv;
  int pixels;                                ///< N * P * Q: the length of the sums
  int filters, columns;                      ///< K/G; R * S * C/G
  int splits, split_pixels;                  ///< how the pixels are shared out
  FastDivision by_channels, by_taps_across;  ///< by C/G, by S
  FastDivision by_columns, by_rows;          ///< by Q, by P
};

__device__ Window window_of(const Product& product, int pixel) {
  const Conv2dProblem& conv = product.conv;
  if (pixel >= product.pixels) return {0, conv.H, conv.W};  // the taps lead away from x
  const int row = product.by_columns.quotient(pixel), q = product.by_columns.remainder(pixel, row);
  const int n = product.by_rows.quotient(row), p = product.by_rows.remainder(row, n);
  const int h = p * conv.stride.h - conv.pad.top, w = q * conv.stride.w - conv.pad.left;
  return {((std::int64_t{n} * conv.H + h) * conv.W + w) * conv.C, h, w};
}

/// x [N][H][W][C], dy [N][P][Q][K], dw [splits][K][R][S][C/groups].
/// Grid (tiles, splits, <= groups), block (S::kThreads).
template <class S, int kBytes>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    wgrad_mma_tf32(Product product, int tiles_n, const float* x, const float* dy, float* dw) {
  const Conv2dProblem& conv = product.conv;
  float* const tiles = dynamic_shared<float>();
  auto* const windows =
      reinterpret_cast<Window*>(tiles + S::Stages::kStages * S::Stages::kFloats);  // [kTables][32]
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int m0 = static_cast<int>(blockIdx.x) / tiles_n * S::M;
  const int n0 = static_cast<int>(blockIdx.x) % tiles_n * S::N;
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;
  const int split = static_cast<int>(blockIdx.y);
  const int begin = min(split * product.split_pixels, product.pixels);
  const int end = min(begin + product.split_pixels, product.pixels);

  // What this thread copies in every stage: kWidth filters of dy, and kWidth channels of a tap.
  constexpr int kWidth = kBytes / 4, kPiecesA = S::M / kWidth, kPiecesB = S::N / kWidth;
  constexpr int kRowsA = S::kThreads / kPiecesA, kRowsB = S::kThreads / kPiecesB;  // at a time
  const int a_m = thread % kPiecesA * kWidth, b_n = thread % kPiecesB * kWidth;
  const bool a_inside = m0 + a_m < product.filters, b_inside = n0 + b_n < product.columns;
  const int b_column = b_inside ? n0 + b_n : 0, tap = product.by_channels.quotient(b_column);
  const int c = product.by_channels.remainder(b_column, tap);
  const int r = product.by_taps_across.quotient(tap);
  const int s = product.by_taps_across.remainder(tap, r);
  const int tap_h = r * conv.dilation.h, tap_w = s * conv.dilation.w;
  const int channels = conv.C / conv.groups;
  const bool in_pairs = product.columns % 2 == 0 && reinterpret_cast<std::uintptr_t>(dw) % 8 == 0;

  for (int group = static_cast<int>(blockIdx.z); group < conv.groups;
       group += static_cast<int>(gridDim.z)) {
    const std::int64_t tap_source =
        (std::int64_t{tap_h} * conv.W + tap_w) * conv.C + std::int64_t{group} * channels + c;
    const float* const group_dy = dy + std::int64_t{group} * product.filters;
    for (int i = thread; i < 2 * kMmaStep; i += S::kThreads) {
      windows[i] = window_of(product, begin + i);
    }
    __syncthreads();  // separates these stores from the loads below

    gemm::MmaSums<S::WarpM / 16, S::WarpN / 8> sums;
    S::Stages::multiply(
        ceil_div(end - begin, kMmaStep), tiles, warp_m, warp_n,
        [&](int step, float* a_tile, float* b_tile) {
          const int first = begin + step * kMmaStep;
#pragma unroll 4
          for (int j = 0; j < kMmaStep / kRowsA; ++j) {
            const int k = thread / kPiecesA + j * kRowsA;
            const bool inside = a_inside && first + k < end;
            ptx::cp_async<kBytes>(
                a_tile + S::Stages::A::at(a_m, k),
                group_dy + (inside ? std::int64_t{first + k} * conv.K + m0 + a_m : 0),
                inside ? kBytes : 0);
          }
          const Window* const table = windows + step % kTables * kMmaStep;
#pragma unroll 4
          for (int j = 0; j < kMmaStep / kRowsB; ++j) {
            const int k = thread / kPiecesB + j * kRowsB;
            const Window window = table[k];
            // Negative coordinates turn into huge unsigned ones.
            const bool inside =
                b_inside && first + k < end &&
                static_cast<unsigned>(window.h + tap_h) < static_cast<unsigned>(conv.H) &&
                static_cast<unsigned>(window.w + tap_w) < static_cast<unsigned>(conv.W);
            ptx::cp_async<kBytes>(b_tile + S::Stages::B::at(b_n, k),
                                  x + (inside ? window.source + tap_source : 0),
                                  inside ? kBytes : 0);
          }
          // Between here and the use, two stages later, lies a barrier; and one lies between the
          // last use of this table and here.
          if (thread < kMmaStep) {
            windows[(step + 2) % kTables * kMmaStep + thread] =
                window_of(product, first + 2 * kMmaStep + thread);
          }
        },
        &sums);

    float* const part = dw + std::int64_t{split} * conv.K * product.columns +
                        std::int64_t{group} * product.filters * product.columns;
    sums.for_each_pair([&](int row, int column, float first, float second) {
      const int m = m0 + warp_m + row, n = n0 + warp_n + column;
      if (m >= product.filters || n >= product.columns) return;
      float* const to = part + std::int64_t{m} * product.columns + n;
      if (in_pairs) {
        *reinterpret_cast<float2*>(to) = {first, second};
      } else {
        to[0] = first;
        if (n + 1 < product.columns) to[1] = second;
      }
    });
  }
}

constexpr int kSumThreads = 256;
constexpr int kMaxSumBlocks = 4096;

/// Adds the parts [splits][count] in their order. Grid <= kMaxSumBlocks, block kSumThreads.
__global__ void add_splits(const float* parts, int splits, std::int64_t count, float* dw) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kSumThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kSumThreads) {
    float sum = parts[i];
    for (int split = 1; split < splits; ++split) sum += parts[split * count + i];
    dw[i] = sum;
  }
}

constexpr int kSumColumns = 32, kSumRows = 8;  ///< Of a block: a warp reads 128 bytes of a row.
constexpr int kRowsOfPart = 128;               ///< Rows that a block adds up, unless
constexpr int kMaxParts = 512;                 ///< there would be more parts than this.

/// sums[part][k] = the sum of in[row][k] over a part of the rows, in the same order in every run.
/// Grid (<= ceil(K/32), parts), block (32, 8).
__global__ void column_sums(std::int64_t rows, int K, const float* in, float* sums) {
  __shared__ float of_row[kSumRows][kSumColumns];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const std::int64_t of_part = ceil_div<std::int64_t>(rows, gridDim.y);
  const std::int64_t begin = blockIdx.y * of_part;
  const std::int64_t end = begin + of_part < rows ? begin + of_part : rows;
  for (int k0 = static_cast<int>(blockIdx.x) * kSumColumns; k0 < K;
       k0 += static_cast<int>(gridDim.x) * kSumColumns) {
    float sum = 0.0f;
    if (k0 + tx < K) {
      for (std::int64_t row = begin + ty; row < end; row += kSumRows) sum += in[row * K + k0 + tx];
    }
    of_row[ty][tx] = sum;
    __syncthreads();  // separates these stores from the loads below
    if (ty == 0 && k0 + tx < K) {
      for (int i = 1; i < kSumRows; ++i) sum += of_row[i][tx];
      sums[std::int64_t{blockIdx.y} * K + k0 + tx] = sum;
    }
    __syncthreads();  // separates these loads from the next columns' stores
  }
}

/// How a problem is computed.
struct Plan {
  OutputTile tile;  ///< Which shape: its rows and columns.
  int splits, split_pixels;
  std::int64_t parts;  ///< Of db.
};

std::int64_t pixels_of(const Conv2dProblem& conv) { return std::int64_t{conv.N} * conv.P * conv.Q; }
std::int64_t filter_size_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.R} * conv.S * (conv.C / conv.groups);
}

template <class S>
Plan plan_with(const Conv2dProblem& conv) {
  const std::int64_t tiles = ceil_div<std::int64_t>(conv.K / conv.groups, S::M) *
                             ceil_div<std::int64_t>(filter_size_of(conv), S::N) * conv.groups;
  const std::int64_t steps =
      std::max<std::int64_t>(1, ceil_div<std::int64_t>(pixels_of(conv), kMmaStep));
  const std::int64_t slots =
      std::int64_t{S::kBlocks} * device_attribute(cudaDevAttrMultiProcessorCount);
  // In units of the time that a block takes for a multiply-add when all slots are busy; an element
  // of dw takes as long as kAddition of those to be written, read and added.
  constexpr double kAddition = 170;
  double best = 0;
  Plan plan{{S::M, S::N}, 1, 0, 0};
  for (std::int64_t splits = 1; splits <= std::min<std::int64_t>(steps, 128); ++splits) {
    const double waves = static_cast<double>(ceil_div(tiles * splits, slots));
    const double time =
        waves * static_cast<double>(ceil_div(steps, splits)) * S::M * S::N * kMmaStep +
        (splits > 1 ? static_cast<double>(splits * conv.K * filter_size_of(conv)) * kAddition /
                          static_cast<double>(slots)
                    : 0);
    if (splits == 1 || time < best) {
      best = time;
      plan.splits = static_cast<int>(splits);
    }
  }
  plan.split_pixels = static_cast<int>(ceil_div<std::int64_t>(steps, plan.splits) * kMmaStep);
  plan.parts =
      std::clamp<std::int64_t>(ceil_div<std::int64_t>(pixels_of(conv), kRowsOfPart), 1, kMaxParts);
  return plan;
}

Plan plan_of(const Conv2dProblem& conv) {
  const auto shared =
      static_cast<std::size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  if (conv.K / conv.groups <= Thin::M) return plan_with<Thin>(conv);
  if (filter_size_of(conv) <= Small::N) return plan_with<Small>(conv);
  if (conv.K / conv.groups <= Narrow::M || shared < Large::kSharedBytes) {
    return plan_with<Narrow>(conv);
  }
  return plan_with<Large>(conv);
}

Declined supports(const Conv2dProblem& conv) {
  if (pixels_of(conv) > conv2d::kMaxDepth || filter_size_of(conv) > conv2d::kMaxDepth) {
    return "2^31 outputs of a channel or weights of a filter, and more";
  }
  return conv2d::why_not_gathered(conv, pixels_of(conv));
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Plan plan = plan_of(conv);
  const std::int64_t of_dw = plan.splits > 1 ? plan.splits * filter_size_of(conv) : 0;
  return static_cast<std::size_t>((of_dw + plan.parts) * conv.K) * sizeof(float);
}

template <class S>
void launch_product(const Product& product, bool in_fours, const float* x, const float* dy,
                    float* dw) {
  const int tiles_n = ceil_div(product.columns, S::N);
  const std::int64_t tiles = std::int64_t{ceil_div(product.filters, S::M)} * tiles_n;
  const dim3 grid(blocks_for(tiles, 1), static_cast<unsigned>(product.splits),
                  blocks_for(product.conv.groups, 1, kMaxGridYZ));
  launch(in_fours ? wgrad_mma_tf32<S, 16> : wgrad_mma_tf32<S, 4>,
         {grid, S::kThreads, S::kSharedBytes}, product, tiles_n, x, dy, dw);
}

/// x [N][H][W][C], dy [N][P][Q][K], dw [K][R][S][C/groups], db [K].
void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const float* x = arrays.in<float>("x");
  const float* dy = arrays.in<float>("dy");
  float* dw = arrays.out<float>("dw");
  const Plan plan = plan_of(conv);
  const std::int64_t count = conv.K * filter_size_of(conv);
  float* const db_parts = arrays.workspace<float>();
  float* const dw_parts = plan.splits > 1 ? db_parts + plan.parts * conv.K : dw;
  const bool in_fours =
      conv.K / conv.groups % 4 == 0 && conv.C / conv.groups % 4 == 0 &&
      (reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(dy)) % 16 == 0;
  const Product product = {.conv = conv,
                           .pixels = static_cast<int>(pixels_of(conv)),
                           .filters = conv.K / conv.groups,
                           .columns = static_cast<int>(filter_size_of(conv)),
                           .splits = plan.splits,
                           .split_pixels = plan.split_pixels,
                           .by_channels = FastDivision(conv.C / conv.groups),
                           .by_taps_across = FastDivision(conv.S),
                           .by_columns = FastDivision(conv.Q),
                           .by_rows = FastDivision(conv.P)};
  const auto launch_shape = plan.tile.rows == Thin::M       ? launch_product<Thin>
                            : plan.tile.columns == Small::N ? launch_product<Small>
                            : plan.tile.rows == Narrow::M   ? launch_product<Narrow>
                                                            : launch_product<Large>;
  launch_shape(product, in_fours, x, dy, dw_parts);
  if (plan.splits > 1) {
    launch(add_splits, {blocks_for(count, kSumThreads, kMaxSumBlocks), kSumThreads}, dw_parts,
           plan.splits, count, dw);
  }
  const unsigned column_blocks = blocks_for(conv.K, kSumColumns, kMaxGridYZ);
  const dim3 block(kSumColumns, kSumRows);
  launch(column_sums, {{column_blocks, static_cast<unsigned>(plan.parts)}, block}, pixels_of(conv),
         conv.K, dy, db_parts);
  launch(column_sums, {column_blocks, block}, plan.parts, conv.K, db_parts,
         arrays.out<float>("db"));
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_mma_tf32() {
  return {.supports = supports, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
