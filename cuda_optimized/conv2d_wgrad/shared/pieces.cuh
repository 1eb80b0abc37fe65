/// @file pieces.cuh
/// @brief The weight gradient in half precision as a GEMM of x and dy for wgmma, both read
/// transposed: what there is to compute, the plan, the loads of both operands by TMA or by a warp,
/// and the bias gradient.
///
/// The rows of the GEMM are *pieces*: 64 channels of a group at one tap. Its columns are the
/// group's filters, its sums run over all pixels of y. A step is 64 pixels.
#pragma once

#include <cmath>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/tensor_map.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_operands.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

using conv2d::Chunk;
using conv2d::Windows;
using gemm::kHalfColumns;
using gemm::kHalfStep;
using gemm::kPieceBytes;

/// The pieces of a group.
struct Pieces {
  int S,        ///< taps in a row of the filter
      per_tap,  ///< pieces of a tap: the last may have fewer than 64 channels
      count;    ///< of all taps
  int group_c,  ///< channels of a group
      taps;     ///< R * S

  /// Of a convolution's filters.
  explicit Pieces(const Conv2dProblem& conv)
      : S(conv.S), per_tap(ceil_div(conv.C / conv.groups, kHalfColumns)),
        count(conv.R * conv.S * per_tap), group_c(conv.C / conv.groups), taps(conv.R * conv.S) {}
  /// A piece's tap and first channel, in words. Beyond the last piece, the last piece again.
  HOST_DEVICE Chunk at(int piece) const {
    const int there = piece < count ? piece : count - 1, tap = there / per_tap;
    return {tap / S, tap % S, there % per_tap * (kHalfColumns / 2)};
  }
  /// Where the gradient of a piece's first channel lies in that of a filter, [R][S][group_c].
  HOST_DEVICE std::int64_t offset(int piece) const {
    return std::int64_t{piece / per_tap} * group_c + piece % per_tap * kHalfColumns;
  }
};

/// @cond Doxygen looks for gemm among the classes.
using Narrow = gemm::WgmmaShape<128, 64, 4, 2>;   ///< Few filters; two blocks per SM.
using Medium = gemm::WgmmaShape<128, 128, 3, 2>;  ///< Likewise.
using Large = gemm::WgmmaShape<128, 256, 4, 1>;   ///< The fewest bytes for each product.
/// @endcond

/// The forward pass, with channels in words.
inline Windows half_windows_of(const Conv2dProblem& conv) {
  return conv2d::forward_product_of(conv).windows;
}

/// Whether TMA can load the operands, if they are aligned to 16 bytes; it counts pixels by an int.
inline bool half_rows_for_tma(const Conv2dProblem& conv) {
  const Windows windows = half_windows_of(conv);
  return conv.C / conv.groups % 8 == 0 && conv.K / conv.groups % 8 == 0 && fits_im2col(windows) &&
         windows.pixels() < INT32_MAX - kHalfStep;
}

/// The product: tiles of two pieces by Shape::N filters, and steps of 64 pixels.
template <class Shape>
gemm::WgmmaWork half_work_of(const Conv2dProblem& conv, int splits) {
  const std::int64_t pixels = std::int64_t{conv.N} * conv.P * conv.Q;
  return {.tiles_m = ceil_div(Pieces(conv).count, gemm::kConsumers),
          .tiles_n = conv.groups * ceil_div(conv.K / conv.groups, Shape::N),
          .splits = splits,
          .steps = static_cast<int>(ceil_div(pixels, std::int64_t{kHalfStep})),
          .products = conv.groups};
}

/// Floats of dw.
inline std::int64_t weights_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.K} * (conv.C / conv.groups) * conv.R * conv.S;
}

/// In how many parts the sums are computed: the estimated cycles of waves of blocks, and of adding
/// up the parts, are least. A step's cycles are those of the forward pass.
template <class Shape>
int half_splits_of(const Conv2dProblem& conv) {
  constexpr int kMostSplits = 64, kLeastSteps = 4;      // steps of a part
  constexpr double kAddedBytes = 1800, kLaunch = 5000;  // a cycle; cycles
  constexpr double kStepCycles = Shape::N == 256 ? 1050 : 620, kStoredBytes = 19;
  int best = 1;
  double least = 0;
  for (int splits = 1; splits <= kMostSplits; ++splits) {
    const gemm::WgmmaWork work = half_work_of<Shape>(conv, splits);
    if (splits > 1 && work.steps < splits * kLeastSteps) break;
    const double rounds = std::ceil(static_cast<double>(work.items()) / multiprocessors());
    const double bytes = 4.0 * static_cast<double>(weights_of(conv)) * (splits + 1);
    const double cycles =
        rounds * (kStepCycles * work.steps / splits + Shape::M * Shape::N * 4 / kStoredBytes) +
        (splits > 1 ? kLaunch + bytes / kAddedBytes : 0);
    if (splits > 1 && cycles >= least) continue;
    best = splits;
    least = cycles;
  }
  return best;
}

/// Calls body(Shape) for the columns that the filters fill.
template <class Body>
auto with_half_shape(const Conv2dProblem& conv, const Body& body) {
  const int filters = conv.K / conv.groups;
  if (!half_rows_for_tma(conv) || filters <= Narrow::N) return body(Narrow{});
  if (filters <= Medium::N) return body(Medium{});
  return body(Large{});
}

/// Floats of the workspace: parts of dw, then of db.
inline std::int64_t half_part_floats(const Conv2dProblem& conv) {
  return with_half_shape(conv, [&]<class Shape>(Shape) {
    const int splits = half_splits_of<Shape>(conv);
    return splits > 1 ? splits * weights_of(conv) : std::int64_t{0};
  });
}

/// x and dy through TMA.
template <class Shape>
struct Im2colPieces {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap x,                             ///< im2col, of words
      dy;                                    ///< tiled, of words: [pixels][K / 2]
  Windows windows;                           ///< of the forward pass, with channels in words
  conv2d::FilterTiles<Shape> filters;        ///< of the tiles' columns
  Pieces pieces;                             ///< of a group

  /// A step of a tile.
  struct Cursor {
    std::int64_t pixel;        ///< the step's first one, of all images
    int row, filter, group_c;  ///< the tile's first piece and filter; its group's first word of x
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const gemm::WgmmaItem& item) const {
    return {.pixel = std::int64_t{item.first} * kHalfStep,
            .row = static_cast<int>(item.m) * gemm::kConsumers,
            .filter = filters.first(item.n),
            .group_c = filters.group(item.n) * windows.group_c};
  }
  /// Starts the copies of a step: to a_tile a piece for each consumer, [64 pixels][64 channels]; to
  /// b_tile [Shape::N / 64][64 pixels][64 filters]; all swizzled. `full` completes once all bytes
  /// have arrived. Pixels beyond the last one are zeros in both.
  __device__ void load(const Cursor& cursor, char* a_tile, char* b_tile,
                       std::uint64_t* full) const {
    const std::int64_t line = cursor.pixel / windows.Q;
    const int q = static_cast<int>(cursor.pixel % windows.Q);
    const int p = static_cast<int>(line % windows.P), n = static_cast<int>(line / windows.P);
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
#pragma unroll
    for (int i = 0; i < gemm::kConsumers; ++i) {
      const Chunk chunk = pieces.at(cursor.row + i);
      ptx::tma_load_im2col(a_tile + i * kPieceBytes, &x, full, cursor.group_c + chunk.c,
                           q * windows.stride.w + windows.first.w,
                           p * windows.stride.h + windows.first.h, n,
                           static_cast<unsigned short>(chunk.s * windows.dilation.w),
                           static_cast<unsigned short>(chunk.r * windows.dilation.h));
    }
#pragma unroll
    for (int i = 0; i < Shape::N / kHalfColumns; ++i) {
      ptx::tma_load<2>(b_tile + i * kPieceBytes, &dy, full,
                       {(cursor.filter + i * kHalfColumns) / 2, static_cast<int>(cursor.pixel)});
    }
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { cursor.pixel += kHalfStep; }
};

/// TMA's view of the arrays.
template <class Shape, class T>
Im2colPieces<Shape> im2col_pieces(const Windows& windows, const Pieces& pieces, const T* x,
                                  const T* dy) {
  const std::int64_t words = windows.K / 2;
  const TiledMap rows = {.rank = 2,
                         .extents = {words, windows.pixels()},
                         .strides = {1, words},
                         .box = {kTensorMapRow, kHalfStep}};
  return {.x = tensor_map(conv2d::im2col_of(windows, kHalfStep), conv2d::words_of(x)),
          .dy = tensor_map(rows, conv2d::words_of(dy)),
          .windows = windows,
          .filters = conv2d::FilterTiles<Shape>(windows),
          .pieces = pieces};
}

/// Copies pieces of dy [pixels][K] to [count][64 pixels][64 filters], swizzled: of the pixels from
/// `pixel` on and the filters from `first` on. By a warp, element by element.
template <class T>
__device__ void gather_dy(const T* dy, const Windows& windows, std::int64_t pixel, int first,
                          int count, char* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = 0; i < count * kHalfStep; ++i) {  // a row of a piece
    const std::int64_t at = pixel + i % kHalfStep;
    const int k = first + i / kHalfStep * kHalfColumns + 2 * lane;
    reinterpret_cast<std::uint32_t*>(to + i / kHalfStep *
                                              kPieceBytes)[gemm::swizzled(i % kHalfStep, lane)] =
        at < windows.pixels() ? conv2d::word_at(dy, at * windows.K + k, windows.K - k) : 0;
  }
}

/// The same by a warp, word by word, for what TMA cannot take.
template <class Shape, class T>
struct GatheredPieces {
  static constexpr bool kWholeWarp = true;  ///< each lane loads one of a step's words
  conv2d::GatheredPixels<kHalfStep, T> x;   ///< with the windows
  const T* dy;                              ///< [pixels][K]
  conv2d::FilterTiles<Shape> filters;       ///< of the tiles' columns
  Pieces pieces;                            ///< of a group

  /// A step of a tile.
  struct Cursor {
    std::int64_t pixel;      ///< the step's first one, of all images
    int row, filter, group;  ///< the tile's first piece and filter, and its group
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const gemm::WgmmaItem& item) const {
    return {.pixel = std::int64_t{item.first} * kHalfStep,
            .row = static_cast<int>(item.m) * gemm::kConsumers,
            .filter = filters.first(item.n),
            .group = filters.group(item.n)};
  }
  /// Copies a step, as Im2colPieces's lies; then one lane arrives at `full`. Called by a whole
  /// warp.
  __device__ void load(const Cursor& cursor, char* a_tile, char* b_tile,
                       std::uint64_t* full) const {
    for (int i = 0; i < gemm::kConsumers; ++i) {
      x.load(pieces.at(cursor.row + i), cursor.pixel, cursor.group,
             reinterpret_cast<std::uint32_t*>(a_tile + i * kPieceBytes));
    }
    gather_dy(dy, x.windows, cursor.pixel, cursor.filter, Shape::N / kHalfColumns, b_tile);
    conv2d::arrive_after_stores(full);
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { cursor.pixel += kHalfStep; }
};

inline constexpr int kSumColumns = 32, kSumRows = 16;  ///< Threads of a block: filters by pixels.
inline constexpr int kMostSlices = 64;                 ///< Of all pixels.

/// Slices of the pixels: a thread adds up eight at least.
inline int slices_of(const Conv2dProblem& conv) {
  const std::int64_t pixels = std::int64_t{conv.N} * conv.P * conv.Q;
  return static_cast<int>(
      std::clamp<std::int64_t>(pixels / (8 * kSumRows), 1, std::int64_t{kMostSlices}));
}

/// Floats of the slices' sums.
inline std::int64_t sum_pixels_floats(const Conv2dProblem& conv) {
  return std::int64_t{slices_of(conv)} * conv.K;
}

/// parts [slices][K] of the sums of dy [pixels][K]. Grid (ceil(K / 32), slices), block (32, 16).
template <class T>
__global__ void conv2d_wgrad_sum_pixels(const T* dy, std::int64_t pixels, int K, float* parts) {
  __shared__ float sums[kSumRows][kSumColumns];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int k = static_cast<int>(blockIdx.x) * kSumColumns + tx;
  float sum = 0.0f;
  if (k < K) {
#pragma unroll 8
    for (std::int64_t pixel = std::int64_t{blockIdx.y} * kSumRows + ty; pixel < pixels;
         pixel += std::int64_t{gridDim.y} * kSumRows) {
      sum += to_float(dy[pixel * K + k]);
    }
  }
  sums[ty][tx] = sum;
  __syncthreads();  // separates these stores from the loads below
  if (ty > 0 || k >= K) return;
  for (int row = 1; row < kSumRows; ++row) sum += sums[row][tx];
  parts[std::int64_t{blockIdx.y} * K + k] = sum;
}

/// Launches the sums of the slices, and their sum. @param parts of sum_pixels_floats()
template <class T>
void launch_sum_pixels(const Conv2dProblem& conv, const T* dy, float* parts, float* db) {
  const int slices = slices_of(conv);
  launch(conv2d_wgrad_sum_pixels<T>,
         {dim3(blocks_for(conv.K, kSumColumns), static_cast<unsigned>(slices)),
          dim3(kSumColumns, kSumRows)},
         dy, std::int64_t{conv.N} * conv.P * conv.Q, conv.K, parts);
  conv2d::launch_sum_splits(parts, slices, conv.K, nullptr, 1, 1, Activation::none, db);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
